//! Cleans what a recogniser wrote: loops are cut, notes about sounds are dropped.
//!
//! Owns the rules about Whisper's habits, nothing about meaning. Called by the engine proper. Pure.

/// How often a pattern must stand in a row to be a loop. Short patterns occur in real speech ("no, no, no").
fn repeats_of_a_loop(period: usize) -> usize {
    if period <= 2 { 5 } else { 3 }
}

/// Tokens in the longest pattern that is looked for.
const LONGEST_PATTERN: usize = 16;

/// When the end of `tokens` is a pattern over and over, the length up to the end of its first occurrence.
pub fn loop_starts(tokens: &[i32]) -> Option<usize> {
    (1..=LONGEST_PATTERN).find_map(|period| {
        let times = repeats_of_a_loop(period);
        let start = tokens.len().checked_sub(period * times)?;
        let tail = &tokens[start..];
        let same = tail.iter().zip(&tail[period..]).all(|(one, next)| one == next);
        same.then_some(start + period)
    })
}

/// The words alone: bracketed notes, music signs and doubled sentences are gone. Empty when no letter or digit is left.
pub fn tidy(text: &str) -> String {
    let text = without_notes(text);
    let mut kept: Vec<&str> = Vec::new();
    for sentence in sentences(&text) {
        // "Five. Five." are two digits of a number, not one said twice.
        if is_number(sentence) || kept.last().is_none_or(|last| !same_words(last, sentence)) {
            kept.push(sentence);
        }
    }
    let text = without_loops(&kept.join(" "));
    if text.chars().any(char::is_alphanumeric) { text } else { String::new() }
}

/// From this many words on a transcript is looked at for loops: shorter ones repeat themselves in real speech.
const LOOP_WORDS: usize = 15;
/// Share of pairs of neighbouring words that have to be new. Read sentences have over 0.9; loops with small changes, which the
/// tokens do not show, under 0.3. It stands for the compression ratio that others look at.
const NEW_PAIRS: f64 = 0.4;

/// One space between words; a text that says the same few words over and over ends where it begins to repeat itself.
fn without_loops(text: &str) -> String {
    let written: Vec<&str> = text.split_whitespace().collect();
    let bare: Vec<String> = written.iter().map(|word| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()).collect();
    let mut seen = std::collections::HashSet::new();
    let first_again = bare.windows(2).enumerate().filter(|(_, pair)| !seen.insert(*pair)).map(|(at, _)| at).next();
    let all: std::collections::HashSet<_> = bare.windows(2).collect();
    let repeats = bare.len() >= LOOP_WORDS && (all.len() as f64) < NEW_PAIRS * (bare.len() - 1) as f64;
    let end = first_again.filter(|_| repeats).unwrap_or(written.len());
    written[..end].join(" ")
}

/// Drops `[Music]`, `(laughs)`, `{noise}`, `<unk>`, `*sighs*`, `♪ ... ♪` and their full-width kin; an opening mark without its
/// closing one drops the mark alone.
fn without_notes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', '(', '{', '<', '【', '（', '［', '〈', '*', '♪', '♫', '♬']) {
        out.push_str(&rest[..at]);
        let open = rest[at..].chars().next().unwrap_or(' ');
        let after = &rest[at + open.len_utf8()..];
        let close = match open {
            '[' => ']',
            '(' => ')',
            '{' => '}',
            '<' => '>',
            '【' => '】',
            '（' => '）',
            '［' => '］',
            '〈' => '〉',
            same => same,
        };
        rest = after.split_once(close).map_or(after, |(_, behind)| behind);
        out.push(' ');
    }
    out.push_str(rest);
    out
}

/// Cuts behind `.`, `!` and `?` where a space follows.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.match_indices(['.', '!', '?']).map(|(at, mark)| at + mark.len());
        let end = end.into_iter().find(|end| rest[*end..].starts_with(char::is_whitespace)).unwrap_or(rest.len());
        let (sentence, behind) = rest.split_at(end);
        rest = behind.trim_start();
        Some(sentence.trim())
    })
}

fn is_number(sentence: &str) -> bool {
    const DIGITS: [&str; 10] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let word: String = sentence.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    DIGITS.contains(&word.as_str()) || !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())
}

fn same_words(one: &str, other: &str) -> bool {
    let words = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    words(one) == words(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_dropped() {
        for (written, wanted) in [
            (" Keep planning. [Music]", "Keep planning."),
            ("[BLANK_AUDIO]", ""),
            ("(wind) No. *sighs*", "No."),
            ("♪ la la ♪ Stop", "Stop"),
            ("five (and a half", "five and a half"),
            ("{noise} <unk> Go on. 【音楽】（拍手）", "Go on."),
            ("(upbeat music) [ Silence ] ♬", ""),
            (" . . . ", ""),
            ("", ""),
        ] {
            assert_eq!(tidy(written), wanted, "{written:?}");
        }
    }

    #[test]
    fn a_sentence_said_twice_in_a_row_is_kept_once() {
        assert_eq!(tidy("Stop. Stop."), "Stop.");
        assert_eq!(tidy("Read me the plan. read me the plan. Now."), "Read me the plan. Now.");
        assert_eq!(tidy("No. Yes. No."), "No. Yes. No.");
        assert_eq!(tidy("5. 5. Zero, zero."), "5. 5. Zero, zero.");
        assert_eq!(tidy("Version 1.5 is out."), "Version 1.5 is out.");
    }

    #[test]
    fn words_that_go_round_in_circles_are_cut_where_they_begin_to() {
        let circle = "So we are going to go, and we are going to go to the, and we are going to go, and we are going to the, and we are going to go, and we are going to go.";
        assert_eq!(tidy(circle), "So we are going to go, and");
        assert_eq!(tidy(&"No, ".repeat(20)), "No,");
        let read = "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his power to do for them.";
        assert_eq!(tidy(read), read);
        let dialled = "one two one two three four one two five six one two seven eight one two";
        assert_eq!(tidy(dialled), dialled);
    }

    #[test]
    fn loops_are_found_where_they_begin() {
        assert_eq!(loop_starts(&[1, 2, 3, 4, 2, 3, 4, 2, 3, 4]), Some(4));
        assert_eq!(loop_starts(&[9, 9, 9]), None);
        assert_eq!(loop_starts(&[9, 9, 9, 9, 9]), Some(1));
        assert_eq!(loop_starts(&[1, 2, 3]), None);
        assert_eq!(loop_starts(&[]), None);
    }
}
