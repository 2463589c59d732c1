//! A flat event looked at where it lies: its fields borrowed, nothing copied. What carries sound is passed on by this alone.
//!
//! Only what every reader of JSON reads alike is taken: one object, no nested values, no escapes, no field twice. Anything else is
//! `None`, and goes the slow way. So nobody can hide one event in another's text.

/// Most fields of a flat event.
const FIELDS_MAX: usize = 12;

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub struct Peek<'a> {
    text: &'a str,
    /// Key, and where its value lies; strings without their quotes.
    fields: [(&'a str, (usize, usize), bool); FIELDS_MAX],
    len: usize,
}

impl<'a> Peek<'a> {
    /// Looks at a text.
    pub fn at(text: &'a str) -> Option<Self> {
        let mut peek = Self { text, fields: [("", (0, 0), false); FIELDS_MAX], len: 0 };
        let mut at = expect(text, skip(text, 0), b'{')?;
        loop {
            let (from, to) = string(text, skip(text, at))?;
            let key = &text[from..to];
            if peek.len == FIELDS_MAX || peek.fields[..peek.len].iter().any(|(k, ..)| *k == key) {
                return None;
            }
            at = skip(text, expect(text, skip(text, to + 1), b':')?);
            let quoted = text.as_bytes().get(at) == Some(&b'"');
            let span = if quoted { string(text, at)? } else { plain(text, at)? };
            peek.fields[peek.len] = (key, span, quoted);
            peek.len += 1;
            at = skip(text, span.1 + usize::from(quoted));
            match text.as_bytes().get(at)? {
                b',' => at += 1,
                b'}' => return (skip(text, at + 1) == text.len()).then_some(peek),
                _ => return None,
            }
        }
    }

    /// A string field.
    pub fn text(&self, key: &str) -> Option<&'a str> { self.find(key).filter(|(_, _, quoted)| *quoted).map(|(_, (from, to), _)| &self.text[*from..*to]) }

    /// A whole number.
    pub fn number(&self, key: &str) -> Option<u64> { self.find(key).filter(|(_, _, quoted)| !quoted).and_then(|(_, (from, to), _)| self.text[*from..*to].parse().ok()) }

    /// True when there are no other fields than these.
    pub fn only(&self, keys: &[&str]) -> bool { self.fields[..self.len].iter().all(|(key, ..)| keys.contains(key)) }

    /// The whole text with other values for some fields, in the order in which they stand in it. Values are plain text for strings and
    /// digits for numbers.
    pub fn with(&self, changes: &[(&str, &str)]) -> String {
        let mut out = String::with_capacity(self.text.len() + 64);
        let mut at = 0;
        for (key, (from, to), _) in &self.fields[..self.len] {
            if let Some((_, value)) = changes.iter().find(|(k, _)| k == key) {
                out.push_str(&self.text[at..*from]);
                out.push_str(value);
                at = *to;
            }
        }
        out.push_str(&self.text[at..]);
        out
    }

    fn find(&self, key: &str) -> Option<&(&'a str, (usize, usize), bool)> { self.fields[..self.len].iter().find(|(k, ..)| *k == key) }
}

fn skip(text: &str, at: usize) -> usize { at + text.as_bytes()[at..].iter().take_while(|b| b" \t\r\n".contains(b)).count() }

fn expect(text: &str, at: usize, byte: u8) -> Option<usize> { (text.as_bytes().get(at) == Some(&byte)).then_some(at + 1) }

/// Where the inside of a string lies that begins here.
fn string(text: &str, at: usize) -> Option<(usize, usize)> {
    let from = expect(text, at, b'"')?;
    let to = from + text[from..].find('"')?;
    (!text[from..to].contains('\\')).then_some((from, to))
}

/// A number, `true`, `false` or `null`.
fn plain(text: &str, at: usize) -> Option<(usize, usize)> {
    let len = text.as_bytes()[at..].iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count();
    (len > 0).then_some((at, at + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_event_is_read_where_it_lies() {
        let text = r#" {"type": "response.output_audio.delta", "output_index":2,"delta" : "AAAA","x":null }"#;
        let peek = Peek::at(text).unwrap();
        assert_eq!((peek.text("type"), peek.text("delta"), peek.number("output_index")), (Some("response.output_audio.delta"), Some("AAAA"), Some(2)));
        assert!(peek.only(&["type", "output_index", "delta", "x"]) && !peek.only(&["type", "delta"]));
        assert_eq!(peek.with(&[("output_index", "7"), ("type", "y")]), r#" {"type": "y", "output_index":7,"delta" : "AAAA","x":null }"#);
    }

    #[test]
    fn what_two_readers_could_read_differently_is_not_taken() {
        for text in [
            r#"{"type":"input_audio_buffer.append","type":"session.update"}"#, r#"{"ty\u0070e":"x"}"#, r#"{"type":"a","b":{"c":1}}"#, r#"{"type":"a","b":[1]}"#,
            r#"{"type":"a"} {"type":"b"}"#, r#"{"type":"a""#, r#"["a"]"#, "", "{", "{}", r#"{"type":}"#, r#"{"type":"a\"}"#, r#"{"type" "a"}"#, r#"{"type":"a",}"#, "{\"é",
        ] {
            assert!(Peek::at(text).is_none(), "{text}");
        }
    }

    #[test]
    fn whatever_is_taken_is_json_that_says_the_same() {
        use proptest::prelude::*;
        proptest!(|(text in r#"[ \{\}":,a-z0-9\\\[\]\.-]{0,40}"#)| {
            if let Some(peek) = Peek::at(&text) {
                // What is no JSON is refused by whoever gets it; what is, has these fields and no others.
                if let Ok(serde_json::Value::Object(map)) = serde_json::from_str::<serde_json::Value>(&text) {
                    prop_assert_eq!(map.len(), peek.len);
                    for (key, value) in &map {
                        if let Some(text) = value.as_str() { prop_assert_eq!(peek.text(key), Some(text)) }
                    }
                }
            }
        });
    }
}
