//! Word errors: recordings whose words are known, and how many of them a transcript gets wrong.
//!
//! Called by `eval words`. Owns the reading of the packages' word lists and the comparison; hears nothing itself.

use std::path::{Path, PathBuf};

/// A recording and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Which set.
    pub set: &'static str,
    /// The recording.
    pub path: PathBuf,
    /// What is said in it.
    pub text: String,
}

/// Every recording with known words under the folder of packages.
///
/// # Errors
/// A sentence: which list cannot be read.
pub fn known(folder: &Path) -> Result<Vec<Known>, String> {
    let data = folder.join("pocketsphinx-testdata/usr/share/pocketsphinx/test/data");
    let mut all = Vec::new();
    for (set, dir, list) in [("read sentences", "librivox", "transcription"), ("cards", "cards", "cards.transcription")] {
        let file = data.join(dir).join(list);
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        all.extend(text.lines().filter_map(sphinx_line).map(|(name, text)| Known { set, path: data.join(dir).join(format!("{name}.wav")), text }));
    }
    all.extend(stamps(&folder.join("tuxpaint-stamps-default")));
    Ok(all)
}

/// "<s> ten of clubs </s> (001)"
fn sphinx_line(line: &str) -> Option<(String, String)> {
    let (text, name) = line.trim().strip_suffix(')')?.rsplit_once('(')?;
    Some((name.trim().to_string(), text.replace("</s>", "").replace("<s>", "").trim().to_string()))
}

/// Names of animals, spoken in English: "owl_desc.ogg" says the first line of "owl.txt".
fn stamps(root: &Path) -> Vec<Known> {
    let (mut all, mut open) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(here) = open.pop() {
        for entry in std::fs::read_dir(&here).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(stem) = name.strip_suffix("_desc.ogg") else { continue };
            let line = std::fs::read(here.join(format!("{stem}.txt"))).ok().and_then(|b| String::from_utf8_lossy(&b).lines().next().map(str::to_string));
            // The list writes "A goat."; what is said is "goat".
            let line = line.map(|l| ["A ", "An ", "The "].iter().find_map(|article| l.strip_prefix(article)).unwrap_or(&l).to_string());
            if let Some(text) = line { all.push(Known { set: "names of animals", path, text }) }
        }
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

/// The words as they are compared: small letters, no marks, numbers and titles spelled out.
pub fn plain_words(text: &str) -> Vec<String> {
    let mut bare = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\'' | '’' => {}
            c if c.is_alphanumeric() => bare.extend(c.to_lowercase()),
            _ => bare.push(' '),
        }
    }
    bare.split_whitespace().flat_map(spelled).collect()
}

fn spelled(word: &str) -> Vec<String> {
    let whole = match word { "mr" => "mister", "mrs" => "missus", "dr" => "doctor", "ok" => "okay", other => other };
    match whole.parse::<u32>() {
        Ok(n) if n < 10_000 && whole.len() <= 4 => number(n).split(' ').map(str::to_string).collect(),
        _ => vec![whole.to_string()],
    }
}

fn number(n: u32) -> String {
    const SMALL: [&str; 20] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
        "eighteen", "nineteen",
    ];
    const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    let rest = |unit: u32| if n % unit == 0 { String::new() } else { format!(" {}", number(n % unit)) };
    match n {
        0..20 => SMALL[n as usize].to_string(),
        20..100 => format!("{}{}", TENS[(n / 10) as usize], rest(10)),
        100..1_000 => format!("{} hundred{}", SMALL[(n / 100) as usize], rest(100)),
        _ => format!("{} thousand{}", number(n / 1_000), rest(1_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_is_no_error() {
        assert_eq!(plain_words("Mr. Dashwood's 10 of clubs, 5 5!"), plain_words("mister dashwoods ten of clubs five five"));
        assert_eq!(plain_words("8080 21 305").join(" "), "eight thousand eighty twenty one three hundred five");
        assert_eq!(sphinx_line("<s> ten of clubs  </s> (001)"), Some(("001".into(), "ten of clubs".into())));
    }

    #[test]
    fn errors_are_counted_by_word() {
        let errors = |a: &str, b: &str| crate::engine::apart::apart(&plain_words(a), &plain_words(b));
        assert_eq!(errors("he was not an ill disposed young man", "He was not an old supposed young man."), 2);
        assert_eq!(errors("a b c", "a c"), 1);
        assert_eq!(errors("", "one two"), 2);
        assert_eq!(errors("one two", "one two"), 0);
    }
}
