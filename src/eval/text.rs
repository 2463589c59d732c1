//! Ordinary English text, cut into utterances and judged in every moment: what of it would approve or loosen something.
//!
//! Called by `voxgate eval text`. Text is judged as typed words are, without sound: the microphone's judge asks for the sound to
//! agree as well, so what nothing here loosens no reading aloud of these words loosens by its words.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::corpora::{bring, run};
use crate::engine::intent::{Decision, Moment, decide_text};

/// Longest utterance, in words: somebody who speaks longer without a pause is cut here too.
const WORDS_MAX: usize = 25;
/// Longest utterance that is kept as an example, in characters.
const EXAMPLE_CHARS: usize = 120;

/// Every moment an utterance can fall into.
pub const MOMENTS: [(&str, Moment); 6] = [
    ("idle, default", Moment::OFF),
    ("idle, plan mode", Moment::PLANNING),
    ("a tool's question was heard", Moment::ASKED),
    ("plan two waits", Moment::REVIEW),
    ("plan two's question was heard", Moment::CONFIRM),
    ("the question about leaving was heard", Moment::LEAVING),
];

/// What a text did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Words of the text.
    pub words: usize,
    /// Utterances: sentences, what stands between their commas, and pieces of long ones.
    pub utterances: usize,
    /// By moment: utterances that approved, loosened or opened a question about it.
    pub loosened: [usize; MOMENTS.len()],
    /// By name of the decision, over all moments: the rest of what was taken for a command or an answer.
    pub others: BTreeMap<&'static str, usize>,
    /// What loosened: moment, utterance, decision.
    pub examples: Vec<(&'static str, String, &'static str)>,
}

impl Judged {
    /// Trials: each utterance in each moment.
    pub fn trials(&self) -> usize { self.utterances * MOMENTS.len() }

    /// All that loosened.
    pub fn all_loosened(&self) -> usize { self.loosened.iter().sum() }

    /// Adds another text.
    pub fn add(&mut self, other: Judged) {
        self.words += other.words;
        self.utterances += other.utterances;
        self.loosened.iter_mut().zip(other.loosened).for_each(|(sum, n)| *sum += n);
        other.others.into_iter().for_each(|(name, n)| *self.others.entry(name).or_default() += n);
        self.examples.extend(other.examples);
    }
}

/// Judges every utterance of a text in every moment.
pub fn judge(text: &str) -> Judged {
    let mut judged = Judged { words: text.split_whitespace().count(), ..Judged::default() };
    for utterance in utterances(text) {
        judged.utterances += 1;
        for (n, (name, moment)) in MOMENTS.iter().enumerate() {
            match decide_text(&utterance, moment) {
                Decision::None | Decision::Neither { .. } => {}
                decision if decision.loosens() => {
                    judged.loosened[n] += 1;
                    judged.examples.push((name, utterance.chars().take(EXAMPLE_CHARS).collect(), decision.name()));
                }
                decision => *judged.others.entry(decision.name()).or_default() += 1,
            }
        }
    }
    judged
}

/// What a person might say in one breath: each sentence with its mark, each part between commas by itself, and pieces of what is
/// longer than a breath.
fn utterances(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for paragraph in paragraphs(text) {
        for sentence in paragraph.split_inclusive(['.', '!', '?', ';', ':']).map(plain).filter(|s| !s.is_empty()) {
            let words: Vec<&str> = sentence.split_whitespace().collect();
            if words.len() > WORDS_MAX {
                all.extend(words.chunks(WORDS_MAX).map(|piece| piece.join(" ")));
            } else {
                all.push(words.join(" "));
            }
            let parts: Vec<&str> = sentence.split([',', '(', ')', '"']).map(plain).filter(|s| !s.is_empty()).collect();
            if parts.len() > 1 {
                all.extend(parts.into_iter().map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")));
            }
        }
    }
    all
}

/// Lines that belong together: a blank line, an indentation or a line of signs ends a paragraph.
fn paragraphs(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in text.lines() {
        let signs = line.trim().chars().all(|c| !c.is_alphanumeric());
        let apart = signs || line.starts_with([' ', '\t', '-', '*', '|', '#', '/']);
        if apart { all.push(String::new()) }
        if let Some(last) = all.last_mut().filter(|_| !signs) {
            last.push_str(line.trim_matches(|c: char| c.is_whitespace() || "*|#/-".contains(c)));
            last.push(' ');
        }
    }
    all
}

fn plain(piece: &str) -> &str { piece.trim_matches(|c: char| c.is_whitespace() || "\"'`*_()[]<>-–—“”‘’".contains(c)) }

/// One text of a Debian package.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// What it is.
    pub name: &'static str,
    packages: &'static [&'static str],
    read: fn(&Path) -> Result<String, String>,
}

/// All of them: more than a million words of scripture, of jokes and dialogues, of questions and manuals.
pub const SOURCES: &[Source] = &[
    Source { name: "King James Bible", packages: &["bible-kjv", "bible-kjv-text"], read: bible },
    Source { name: "fortune cookies", packages: &["fortunes", "fortunes-min"], read: fortunes },
    Source { name: "Debian Reference", packages: &["debian-reference-en"], read: |at| unpacked(&at.join("debian-reference-en/usr/share/debian-reference/debian-reference.en.txt.gz")) },
    Source { name: "Debian FAQ", packages: &["debian-faq"], read: |at| unpacked(&at.join("debian-faq/usr/share/doc/debian/FAQ/debian-faq.en.txt.gz")) },
];

impl Source {
    /// Its text, brought into `folder` where it is not there yet.
    ///
    /// # Errors
    /// A sentence: which package or program failed.
    pub fn text(&self, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<String, String> {
        bring(folder, self.packages.iter().copied(), say)?;
        (self.read)(folder).map_err(|error| format!("{}: {error}", self.name))
    }
}

/// The package's own program reads its own file; each line begins with where it stands.
fn bible(at: &Path) -> Result<String, String> {
    let mut program = Command::new(at.join("bible-kjv/usr/bin/bible"));
    let out = run(program.args(["-f", "-d", "bible.data", "-p"]).arg(at.join("bible-kjv-text/usr/lib")).arg("gen1:1-rev22:21"))?;
    Ok(String::from_utf8_lossy(&out).lines().filter_map(|line| line.split_once(' ')).map(|(_, verse)| format!("{verse}\n\n")).collect())
}

/// The files without an ending; a line with a % alone stands between two cookies.
fn fortunes(at: &Path) -> Result<String, String> {
    let mut text = String::new();
    for package in ["fortunes", "fortunes-min"] {
        let folder = at.join(package).join("usr/share/games/fortunes");
        let mut files: Vec<_> = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?.filter_map(Result::ok).map(|e| e.path()).collect();
        files.retain(|path| path.is_file() && path.extension().is_none());
        files.sort();
        for file in files {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?));
            text.push('\n');
        }
    }
    Ok(text)
}

fn unpacked(file: &Path) -> Result<String, String> { Ok(String::from_utf8_lossy(&run(Command::new("gzip").arg("-dc").arg(file))?).into_owned()) }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_as_it_might_be_said() {
        let text = "\"Yes,\" he said, \"go ahead.\"\nAnd they went on.\n\n# Stop\n%\nI will. Not!";
        let cut = utterances(text);
        for wanted in ["Yes,\" he said, \"go ahead.", "go ahead.", "And they went on.", "Stop", "I will.", "Not!"] {
            assert!(cut.iter().any(|u| u == wanted), "{wanted}: {cut:?}");
        }
        assert!(utterances(&"word ".repeat(60)).iter().all(|u| u.split(' ').count() <= WORDS_MAX));
    }

    #[test]
    fn what_loosens_is_counted_with_its_moment() {
        let judged = judge("Yes, go ahead. The weather is fine. Exit plan mode! Stop.");
        assert_eq!((judged.words, judged.loosened[0], judged.loosened[1]), (11, 0, 1), "{judged:?}");
        assert!(judged.loosened[2] >= 1 && judged.loosened[5] >= 1 && judged.loosened[4] == 0, "{judged:?}");
        assert!(judged.examples.iter().any(|(moment, said, what)| *moment == MOMENTS[2].0 && said == "Yes, go ahead." && *what == "approve"));
        assert!(judged.others.contains_key("stop"));
    }
}
