//! Cutting a text into what the network speaks at once: sentences, and parts of long ones.
//!
//! Owns the cut. Called by `hibari`. Never loses a word: the pieces joined are the text.

/// Longest piece, in bytes: about 20 s of speech.
pub const MAX_PIECE: usize = 300;
/// What a full stop may follow without ending a sentence.
const TITLES: &[&str] = &["Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Jr", "Sr", "vs", "etc", "No", "e.g", "i.e"];

/// The pieces in order, trimmed, none empty, none longer than [`MAX_PIECE`] bytes.
pub fn split(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        for (at, c) in line.char_indices() {
            let end = at + c.len_utf8();
            if ends_sentence(&line[start..end], &line[end..]) {
                cut_long(&line[start..end], &mut out);
                start = end;
            }
        }
        cut_long(&line[start..], &mut out);
    }
    out
}

fn ends_sentence(so_far: &str, rest: &str) -> bool {
    let closed = so_far.trim_end_matches(['"', '\u{201d}', '\'', '\u{2019}', ')']);
    if !closed.ends_with(['.', '!', '?', '\u{2026}']) || !rest.starts_with(char::is_whitespace) {
        return false;
    }
    let next = rest.trim_start().chars().next();
    if next.is_none_or(char::is_lowercase) {
        return false;
    }
    let Some(stem) = closed.strip_suffix('.') else { return true };
    let word = stem.rsplit(char::is_whitespace).next().unwrap_or("");
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    !(TITLES.contains(&word) || initial)
}

/// Cuts at the last clause mark, else the last space, else the last character that fits.
fn cut_long<'a>(mut text: &'a str, out: &mut Vec<&'a str>) {
    text = text.trim();
    while text.len() > MAX_PIECE {
        let fits = (0..=MAX_PIECE).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        let head = &text[..fits];
        let clause = head.rmatch_indices([',', ';', ':', '\u{2014}']).map(|(i, m)| i + m.len())
            .find(|&i| i > MAX_PIECE / 3 && text[i..].starts_with(char::is_whitespace));
        let at = clause.or_else(|| head.rfind(char::is_whitespace).filter(|&i| i > 0)).unwrap_or(fits);
        out.push(text[..at].trim_end());
        text = text[at..].trim_start();
    }
    if !text.is_empty() {
        out.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sentences_are_pieces_and_titles_are_not_ends() {
        assert_eq!(split("Plan mode is on. I can look!  Really? \"Yes.\" Dr. Smith agrees, e.g. today."),
            ["Plan mode is on.", "I can look!", "Really?", "\"Yes.\"", "Dr. Smith agrees, e.g. today."]);
        assert_eq!(split("one\n\ntwo 3.5 three"), ["one", "two 3.5 three"]);
        assert!(split(" \n ").is_empty());
    }

    #[test]
    fn long_sentences_are_cut_at_clauses() {
        let text = format!("{}, {} end", "word ".repeat(40).trim_end(), "more ".repeat(40));
        let pieces = split(&text);
        assert!(pieces[0].ends_with("word,"), "{pieces:?}");
        assert!(pieces.iter().all(|p| p.len() <= MAX_PIECE));
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "[a-zé .,?!\n\u{4e00}]{0,900}") {
            let pieces = split(&text);
            prop_assert!(pieces.iter().all(|p| !p.is_empty() && p.len() <= MAX_PIECE));
            let squeeze = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(squeeze(&pieces.concat()), squeeze(&text));
        }
    }
}
