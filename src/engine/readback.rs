//! Words as they are shown and passed on: numbers that are spelled out read as digits, and near words become the titles they mean.
//!
//! Pure, and only for what a person reads and an agent is told. The spoken grammar judges what the recogniser wrote, never this.

use super::apart::apart;

/// Words after which digits that are said one by one are one number.
const NAMES_OF_NUMBERS: &[&str] = &["port", "number", "code", "pin", "extension", "room", "id", "version", "channel", "flight", "ticket", "phone", "dial", "postcode", "zip"];
/// Digits in a row that are a number whatever stands before them.
const SURELY: usize = 3;
/// Titles that are looked at. Chosen: what a person keeps in mind, and a bound on the work.
pub const HINTS_MAX: usize = 40;
/// The longest title that is looked for, in words.
const HINT_WORDS: usize = 6;

/// Who makes something new names it as it is meant, however near that is to what there is.
const MAKING: &[&str] = &["add", "new", "write", "remember", "remind", "make", "create", "call", "rename"];

/// "port eight zero eight zero" reads "port 8080". Two digits and more become a number after a word like port, three and more
/// anywhere; "double" and "triple" count. All else stays as it was written, marks too.
pub fn with_digits(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut out: Vec<String> = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let named = out.iter().rev().find(|w| !["is", "was", "number", "the"].contains(&bare(w).as_str())).is_some_and(|w| NAMES_OF_NUMBERS.contains(&bare(w).as_str()))
            || out.last().is_some_and(|w| NAMES_OF_NUMBERS.contains(&bare(w).as_str()));
        let (digits, used) = digits_from(&words[at..]);
        if digits.len() >= if named { 2 } else { SURELY } && used >= 2 {
            let last = words[at + used - 1];
            out.push(format!("{digits}{}", &last[last.trim_end_matches(|c: char| !c.is_alphanumeric()).len()..]));
            at += used;
        } else {
            out.push(words[at].to_string());
            at += 1;
        }
    }
    out.join(" ")
}

/// The digits that these words begin with, and how many words they are. A mark ends them, but for a hyphen and, as a pause between
/// digits, a comma.
fn digits_from(words: &[&str]) -> (String, usize) {
    let mut digits = String::new();
    let mut used = 0;
    while let Some(word) = words.get(used) {
        let times = match bare(word).as_str() { "double" => 2, "triple" => 3, _ => 1 };
        let (digit_at, spelled) = if times > 1 { (used + 1, words.get(used + 1)) } else { (used, Some(word)) };
        let Some(found) = spelled.and_then(|w| digit(&bare(w), digits.is_empty() && times == 1)) else { break };
        digits.push_str(&found.repeat(times));
        used = digit_at + 1;
        if words[digit_at].ends_with(['.', '!', '?', ';', ':']) { break }
    }
    (digits, used)
}

/// A digit's word or figures as they are written. "Oh" is a zero only among digits.
fn digit(word: &str, first: bool) -> Option<String> {
    const WORDS: [&str; 10] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    if let Some(n) = WORDS.iter().position(|w| *w == word) { return Some(n.to_string()) }
    if !first && (word == "oh" || word == "o") { return Some("0".into()) }
    (!word.is_empty() && word.len() <= 4 && word.chars().all(|c| c.is_ascii_digit())).then(|| word.to_string())
}

fn bare(word: &str) -> String { word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect() }

/// Puts known titles in the place of words that were nearly them: "open the birthday's plan" with a note "Birthday plan" reads
/// "open the Birthday plan". Only for ordinary speech; the first [`HINTS_MAX`] titles count.
pub fn with_titles(text: &str, titles: &[String]) -> String {
    let mut words: Vec<String> = text.split_whitespace().map(str::to_string).collect();
    if words.iter().any(|w| MAKING.contains(&bare(w).as_str())) {
        return text.to_string();
    }
    for title in titles.iter().take(HINTS_MAX) {
        let wanted: Vec<String> = title.split_whitespace().map(bare).filter(|w| !w.is_empty()).collect();
        let letters: usize = wanted.iter().map(|w| w.chars().count()).sum();
        // A short title is near too much.
        if wanted.is_empty() || wanted.len() > HINT_WORDS || letters < 6 { continue }
        if let Some((at, length)) = nearest(&words, &wanted) {
            let last = words[at + length - 1].clone();
            let marks = last[last.trim_end_matches(|c: char| !c.is_alphanumeric()).len()..].to_string();
            words.splice(at..at + length, [format!("{}{marks}", title.trim())]);
        }
    }
    words.join(" ")
}

/// Where the words are nearly this title: one letter of each five may differ, wherever the words are parted. Nothing when they
/// are the title already.
fn nearest(words: &[String], title: &[String]) -> Option<(usize, usize)> {
    let (wanted, count) = (title.concat(), title.len());
    let most = wanted.chars().count() / 5;
    let mut best: Option<(usize, usize, usize)> = None;
    for length in count.saturating_sub(1).max(1)..=count + 1 {
        for at in 0..(words.len() + 1).saturating_sub(length) {
            let said: String = words[at..at + length].iter().map(|w| bare(w)).collect();
            // The first sound is what recognisers get right; and "a" or "the" before a title is no part of it.
            if said.chars().next() != wanted.chars().next() || said.chars().count().abs_diff(wanted.chars().count()) > most { continue }
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            let apart = apart(&letters(&said), &letters(&wanted));
            if apart == 0 && length == count { return None }
            // Each word's first letter is what tells "buy milk" from "buy silk".
            if length == count && !first_letters_agree(&words[at..at + length], title) { continue }
            if apart <= most && best.is_none_or(|(_, _, least)| apart < least) { best = Some((at, length, apart)) }
        }
    }
    best.map(|(at, length, _)| (at, length))
}

fn first_letters_agree(said: &[String], title: &[String]) -> bool {
    said.iter().zip(title).all(|(one, other)| bare(one).chars().next() == other.chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_case_31_numbers_are_read_back_as_digits() {
        for (heard, shown) in [
            ("Open port eight zero eight zero.", "Open port 8080."),
            ("port eight zero eight zero", "port 8080"),
            ("The port is eight zero eight zero, please.", "The port is 8080, please."),
            ("Use code four, two, double seven, oh, one!", "Use code 427701!"),
            ("My number is 5 5 5 0 1 9 9.", "My number is 5550199."),
            ("Call five five five one two.", "Call 55512."),
            ("port 80 80", "port 8080"),
            ("room one two", "room 12"),
        ] {
            assert_eq!(with_digits(heard), shown);
        }
    }

    #[test]
    fn other_words_stay_as_they_were() {
        for text in ["one two", "Confirm plan two.", "I have two cats and one dog.", "One. Two. Three.", "oh no", "port of call", "Oh, one more thing.", "number one", "", "code red", "port 8080", "double check it"] {
            assert_eq!(with_digits(text), text);
        }
    }

    #[test]
    fn near_words_become_the_title_they_mean() {
        let titles = ["Birthday plan", "shopping list", "Kubernetes upgrade", "buy milk", "ab"].map(String::from);
        for (heard, passed_on) in [
            ("Read the birthday plans.", "Read the Birthday plan."),
            ("Open my shoping list, please", "Open my shopping list, please"),
            ("Read buy silk", "Read buy silk"),
            ("Add a note: birthday plans", "Add a note: birthday plans"),
            ("delete cubernetes upgrade", "delete cubernetes upgrade"),
            ("delete Kuber netes upgrade!", "delete Kubernetes upgrade!"),
            ("Read the birthday plan.", "Read the birthday plan."),
            ("Buy a cab", "Buy a cab"),
            ("What is the weather like?", "What is the weather like?"),
            ("", ""),
        ] {
            assert_eq!(with_titles(heard, &titles), passed_on);
        }
    }
}
