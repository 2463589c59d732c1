//! Cutting a growing answer into segments that can be spoken while the rest is being written.

/// Shortest segment worth a synthesis of its own, in characters, unless the text ends.
pub const SHORTEST: usize = 24;
/// Longest segment; beyond it a comma or a space cuts.
pub const LONGEST: usize = 240;

/// Collects text and gives out whole sentences.
#[derive(Debug, Default)]
pub struct Segmenter {
    pending: String,
}

impl Segmenter {
    /// Adds text; answers the segments that are complete now, in order.
    pub fn push(&mut self, text: &str) -> Vec<String> {
        self.pending.push_str(text);
        let mut out = Vec::new();
        while let Some(end) = self.cut_at() {
            let rest = self.pending.split_off(end);
            let segment = std::mem::replace(&mut self.pending, rest);
            if !segment.trim().is_empty() {
                out.push(segment.trim().to_string());
            }
        }
        out
    }

    /// The text has ended; answers what is left.
    pub fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.pending);
        (!rest.trim().is_empty()).then(|| rest.trim().to_string())
    }

    /// Byte index after which to cut, if a cut is due.
    fn cut_at(&self) -> Option<usize> {
        let mut count = 0;
        let mut fallback = None;
        let mut chars = self.pending.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            count += 1;
            let after = i + c.len_utf8();
            let next = chars.peek().map(|(_, n)| *n);
            let ends = c == '\n' || (matches!(c, '.' | '!' | '?') && next.is_some_and(char::is_whitespace) && !self.is_abbreviation(i));
            if ends && count >= SHORTEST {
                return Some(after);
            }
            if matches!(c, ',' | ';' | ':' | ' ') && count >= SHORTEST {
                fallback = Some(after);
            }
            if count >= LONGEST {
                return fallback.or(Some(after));
            }
        }
        None
    }

    /// "e.g. ", "Dr. ", "3. " at the start of a list line do not end a sentence.
    fn is_abbreviation(&self, dot: usize) -> bool {
        let word = self.pending[..dot].rsplit(|c: char| c.is_whitespace()).next().unwrap_or("");
        word.chars().all(|c| c.is_ascii_digit()) || ["mr", "mrs", "ms", "dr", "st", "e.g", "i.e", "etc", "vs", "no"].contains(&word.to_lowercase().as_str())
    }
}

/// How much of `text` was heard when `heard_ms` of its `total_ms` were played: whole words, in proportion of what each takes to say.
pub fn heard_part(text: &str, heard_ms: u64, total_ms: u64) -> String {
    if total_ms == 0 || heard_ms >= total_ms {
        return if total_ms == 0 { String::new() } else { text.to_string() };
    }
    // A word costs its letters and a pause; measured on the default voice this finds the cut within a word.
    let cost = |w: &str| w.chars().count() as f64 + if w.ends_with(['.', '!', '?', ':', ';']) { 6.0 } else if w.ends_with(',') { 3.5 } else { 1.0 };
    let total: f64 = text.split_whitespace().map(cost).sum();
    let budget = total * heard_ms as f64 / total_ms as f64;
    let mut spent = 0.0;
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        spent += cost(word);
        // A word counts once the most of it has sounded.
        if spent - cost(word) * 0.5 > budget {
            break;
        }
        words.push(word);
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_come_out_as_they_end() {
        let mut s = Segmenter::default();
        assert!(s.push("You have two notes: buy").is_empty());
        assert_eq!(s.push(" milk, and call Ann. The next"), vec!["You have two notes: buy milk, and call Ann."]);
        assert_eq!(s.finish().as_deref(), Some("The next"));
        assert_eq!(s.finish(), None);
    }

    #[test]
    fn long_text_without_a_stop_is_cut_at_a_space() {
        let mut s = Segmenter::default();
        let out = s.push(&"word ".repeat(80));
        assert!(!out.is_empty() && out.iter().all(|t| t.chars().count() <= LONGEST && t.ends_with("word")));
    }

    #[test]
    fn the_heard_part_ends_at_a_word() {
        let text = "Plan mode is on. I can look, but I will not change anything.";
        assert_eq!(heard_part(text, 0, 4000), "");
        assert_eq!(heard_part(text, 4000, 4000), text);
        let part = heard_part(text, 1000, 4000);
        assert!(text.starts_with(&part) && part.split(' ').count().abs_diff(4) <= 1, "{part}");
    }
}
