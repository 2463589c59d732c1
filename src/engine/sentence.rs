//! Sentences that stand for a call: a template with slots, and whether an utterance is one of its readings.
//!
//! `tools/` reads templates out of manifests, an agent matches what was said against them. Nothing here decides whether a
//! call may run, and none of it is the spoken grammar that approves or loosens ([`sounds_approving`] only keeps texts away
//! from that one).
//!
//! A template is words, `{slot}`, `[optional words]` and `(one way|another)`; groups nest. Matching takes the whole
//! utterance, whatever its case and punctuation, and a slot takes the rest in the words as they were said.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

/// Most readings one template may unfold to; chosen so that a manifest cannot make matching slow.
pub const READINGS_MAX: usize = 256;
/// Most slots in one reading: with three, trying every cut of a long utterance stays cheap.
pub const SLOTS_MAX: usize = 3;
/// Longest utterance that is looked at, in words; longer ones are no command.
pub const WORDS_MAX: usize = 200;

/// One way of saying a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentence {
    /// Wire name of the tool.
    pub tool: String,
    /// What is said.
    pub template: Template,
    /// Arguments the phrase itself fixes (an object); slots are laid over them.
    pub arguments: Value,
    /// What else is filled in by the agent.
    pub fill: Fill,
    /// How a result is told, shared by all sentences of a tool.
    pub answer: Option<Arc<Answer>>,
}

/// Arguments that come neither from the words nor from the phrase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Nothing.
    #[default]
    Nothing,
    /// The draft plan, as `{summary, steps}`.
    Draft,
    /// The todo list so far with the slot `text` as its new last item, as `{todos}`.
    AppendTodo,
}

/// How a result is told without a model. Which form is used depends on the number `count` of the result's object;
/// slots are taken from the result, then from the arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// For any result.
    pub text: String,
    /// For `count` 0.
    pub none: Option<String>,
    /// For `count` 1.
    pub one: Option<String>,
}

impl Answer {
    /// The form for this result.
    pub fn form(&self, output: &Value) -> &str {
        let special = match output["count"].as_u64() {
            Some(0) => self.none.as_deref(),
            Some(1) => self.one.as_deref(),
            _ => None,
        };
        special.unwrap_or(&self.text)
    }
}

/// Why a template is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// A bracket has no partner.
    #[error("\"{0}\" has no partner")]
    Unpaired(char),
    /// `{}` or a slot with odd characters.
    #[error("a slot is named with letters, digits and _, like {{text}}")]
    BadSlot,
    /// It says nothing but slots.
    #[error("a phrase needs at least two words of its own in every reading, or it would match almost anything")]
    TooLoose,
    /// Too many slots in a reading, or one slot twice.
    #[error("a phrase has at most {SLOTS_MAX} slots, each once, with a word between them")]
    Slots,
    /// It unfolds to too many readings.
    #[error("a phrase unfolds to at most {READINGS_MAX} readings")]
    TooMany,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// A word: its bare form and as it was written.
    Word(String, String),
    /// A slot's name.
    Slot(String),
}

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    source: String,
    readings: Vec<Vec<Piece>>,
}

/// An utterance that matched.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// Slot names and the words they took, in the order of the template.
    pub slots: Map<String, Value>,
    /// Words of the template that matched: the more, the more specific.
    pub words: usize,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// [`BadTemplate`] says what is wrong with it.
    pub fn parse(source: &str) -> Result<Template, BadTemplate> {
        let mut parser = Parser { chars: source.chars().collect(), at: 0 };
        let readings = parser.choice(None)?;
        readings.iter().try_for_each(|r| check_reading(r))?;
        Ok(Template { source: source.to_string(), readings })
    }

    /// As it was written.
    pub fn source(&self) -> &str { &self.source }

    /// Names of all slots, each once.
    pub fn slots(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for piece in self.readings.iter().flatten() {
            if let Piece::Slot(name) = piece && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// True when every reading holds this slot.
    pub fn always_has(&self, slot: &str) -> bool {
        self.readings.iter().all(|r| r.iter().any(|p| matches!(p, Piece::Slot(s) if s == slot)))
    }

    /// The first reading as a person would say it, slots as "something".
    pub fn example(&self) -> String {
        let reading = self.readings.first().map(Vec::as_slice).unwrap_or_default();
        let words: Vec<&str> = reading.iter().map(|piece| match piece { Piece::Word(_, written) => written.as_str(), Piece::Slot(_) => "something" }).collect();
        words.join(" ")
    }

    /// Whether the whole utterance is one of the readings; the most specific reading counts.
    pub fn matches(&self, said: &Utterance) -> Option<Match> {
        let mut best: Option<Match> = None;
        for reading in &self.readings {
            let mut cuts = Vec::new();
            if !said.fits(reading, 0, &mut cuts) {
                continue;
            }
            let words = reading.len() - cuts.len();
            if best.as_ref().is_none_or(|b| words > b.words) {
                let slots = cuts.into_iter().map(|(name, range)| (name.to_string(), Value::from(said.text_of(range)))).collect();
                best = Some(Match { slots, words });
            }
        }
        best
    }
}

fn check_reading(reading: &[Piece]) -> Result<(), BadTemplate> {
    let slots: Vec<&String> = reading.iter().filter_map(|p| if let Piece::Slot(s) = p { Some(s) } else { None }).collect();
    let twice = slots.iter().enumerate().any(|(i, s)| slots[..i].contains(s));
    let touching = reading.windows(2).any(|w| matches!(w, [Piece::Slot(_), Piece::Slot(_)]));
    if slots.len() > SLOTS_MAX || twice || touching {
        return Err(BadTemplate::Slots);
    }
    if reading.len() - slots.len() < 2 { Err(BadTemplate::TooLoose) } else { Ok(()) }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

impl Parser {
    /// Alternatives up to `close` (or the end), unfolded.
    fn choice(&mut self, close: Option<char>) -> Result<Vec<Vec<Piece>>, BadTemplate> {
        let mut all = Vec::new();
        loop {
            all.extend(self.sequence()?);
            if all.len() > READINGS_MAX {
                return Err(BadTemplate::TooMany);
            }
            match self.chars.get(self.at).copied() {
                Some('|') => self.at += 1,
                found if found == close => {
                    self.at += usize::from(found.is_some());
                    return Ok(all);
                }
                Some(other) => return Err(BadTemplate::Unpaired(other)),
                None => return Err(BadTemplate::Unpaired(if close == Some(']') { '[' } else { '(' })),
            }
        }
    }

    fn sequence(&mut self) -> Result<Vec<Vec<Piece>>, BadTemplate> {
        let mut readings = vec![Vec::new()];
        while let Some(c) = self.chars.get(self.at).copied() {
            let next = match c {
                '|' | ']' | ')' => break,
                '}' => return Err(BadTemplate::Unpaired('}')),
                '[' => {
                    self.at += 1;
                    let mut inner = self.choice(Some(']'))?;
                    inner.push(Vec::new());
                    inner
                }
                '(' => {
                    self.at += 1;
                    self.choice(Some(')'))?
                }
                '{' => vec![vec![self.slot()?]],
                _ => vec![self.words()],
            };
            if readings.len() * next.len() > READINGS_MAX {
                return Err(BadTemplate::TooMany);
            }
            readings = readings.iter().flat_map(|r| next.iter().map(move |n| [r.as_slice(), n.as_slice()].concat())).collect();
        }
        Ok(readings)
    }

    fn slot(&mut self) -> Result<Piece, BadTemplate> {
        let rest = &self.chars[self.at + 1..];
        let end = rest.iter().position(|c| *c == '}').ok_or(BadTemplate::Unpaired('{'))?;
        let name: String = rest[..end].iter().collect();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(BadTemplate::BadSlot);
        }
        self.at += end + 2;
        Ok(Piece::Slot(name))
    }

    fn words(&mut self) -> Vec<Piece> {
        let rest = &self.chars[self.at..];
        let end = rest.iter().position(|c| "[](){}|".contains(*c)).unwrap_or(rest.len());
        let text: String = rest[..end].iter().collect();
        self.at += end;
        Utterance::of(&text).words.into_iter().map(|w| Piece::Word(w.bare, text[w.at].to_string())).collect()
    }
}

/// What was said, cut into words that remember where they stood.
#[derive(Clone, Debug, Default)]
pub struct Utterance {
    text: String,
    words: Vec<Word>,
}

#[derive(Clone, Debug)]
struct Word {
    /// Lower case, no apostrophes.
    bare: String,
    /// Bytes of the text.
    at: Range<usize>,
}

/// Marks that belong to the sentence and not to a word.
fn is_mark(c: char) -> bool { ".,!?;:\"'`()[]…—–-“”‘’".contains(c) }

impl Utterance {
    /// Cuts a text into words. A text of more than [`WORDS_MAX`] words has none: it is no command.
    pub fn of(text: &str) -> Utterance {
        let mut words = Vec::new();
        for piece in text.split(|c: char| c.is_whitespace() || "-–—".contains(c)) {
            let trimmed = piece.trim_matches(is_mark);
            if trimmed.is_empty() {
                continue;
            }
            let start = trimmed.as_ptr() as usize - text.as_ptr() as usize;
            let bare: String = trimmed.chars().filter(|c| !"'’‘".contains(*c)).flat_map(char::to_lowercase).collect();
            words.push(Word { bare, at: start..start + trimmed.len() });
        }
        if words.len() > WORDS_MAX {
            words.clear();
        }
        Utterance { text: text.to_string(), words }
    }

    /// True when nothing was said.
    pub fn is_empty(&self) -> bool { self.words.is_empty() }

    /// The same without words of courtesy at either end ("could you ... please").
    pub fn without_courtesy(&self) -> Utterance {
        let mut words = self.words.as_slice();
        while let Some(n) = LEAD_INS.iter().filter_map(|l| starts(words, l)).max() { words = &words[n..]; }
        while let Some(n) = LEAD_OUTS.iter().filter_map(|l| ends(words, l)).max() { words = &words[..words.len() - n]; }
        Utterance { text: self.text.clone(), words: words.to_vec() }
    }

    fn text_of(&self, range: Range<usize>) -> &str {
        let bytes = self.words[range.start].at.start..self.words[range.end - 1].at.end;
        &self.text[bytes]
    }

    /// Whether `pieces` take exactly the words from `from` on; slots take as few words as they can.
    fn fits<'a>(&self, pieces: &'a [Piece], from: usize, cuts: &mut Vec<(&'a str, Range<usize>)>) -> bool {
        match pieces {
            [] => from == self.words.len(),
            [Piece::Word(word, _), rest @ ..] => self.words.get(from).is_some_and(|w| &w.bare == word) && self.fits(rest, from + 1, cuts),
            [Piece::Slot(name), rest @ ..] => {
                let before = cuts.len();
                for end in from + 1..=self.words.len() {
                    cuts.push((name, from..end));
                    if self.fits(rest, end, cuts) {
                        return true;
                    }
                    cuts.truncate(before);
                }
                false
            }
        }
    }
}

const LEAD_INS: &[&str] = &[
    "please", "hey", "ok", "okay", "so", "now", "well", "um", "uh", "and", "then", "can you", "could you", "would you", "will you",
    "i want you to", "id like you to", "i would like you to", "go and",
];
const LEAD_OUTS: &[&str] = &["please", "thanks", "thank you", "for me", "now", "right now"];

fn starts(words: &[Word], phrase: &str) -> Option<usize> {
    let n = phrase.split(' ').count();
    // What is left must still be something, or "thanks" alone would vanish.
    (words.len() > n && phrase.split(' ').zip(words).all(|(p, w)| p == w.bare)).then_some(n)
}

fn ends(words: &[Word], phrase: &str) -> Option<usize> {
    let n = phrase.split(' ').count();
    (words.len() > n && phrase.split(' ').zip(&words[words.len() - n..]).all(|(p, w)| p == w.bare)).then_some(n)
}

/// The sentence that fits best: most words of its own, then the one that stands first. What was said counts before what is
/// left of it without courtesy.
pub fn best<'a>(sentences: &'a [Sentence], text: &str) -> Option<(&'a Sentence, Match)> {
    let said = Utterance::of(text);
    let mut best: Option<(&Sentence, Match)> = None;
    for utterance in [said.without_courtesy(), said] {
        for sentence in sentences {
            let Some(found) = sentence.template.matches(&utterance) else { continue };
            if best.as_ref().is_none_or(|(_, b)| found.words > b.words) {
                best = Some((sentence, found));
            }
        }
    }
    best
}

/// Sentences by which a person approves or loosens; nothing the gateway says may be, begin with or end with one, or its
/// own echo could answer its own question.
const APPROVING: &[&str] = &["yes", "yeah", "go ahead", "yes do it", "yes please", "exit plan mode", "leave plan mode", "plan mode off", "approve it", "confirm it"];

/// True when one of the text's sentences begins or ends with words that approve or loosen ("Yes, go ahead.", "confirm plan two").
pub fn sounds_approving(text: &str) -> bool {
    let whole = std::iter::once(text);
    text.split(['.', '!', '?', ';', ':', '\n']).chain(whole).any(|part| {
        let words = Utterance::of(part).words;
        let edge = |phrase: &&str| {
            let list: Vec<&str> = phrase.split(' ').collect();
            let n = list.len();
            words.len() >= n && [&words[..n], &words[words.len() - n..]].iter().any(|w| w.iter().zip(&list).all(|(w, p)| w.bare == *p))
        };
        APPROVING.iter().any(edge) || ["approve", "confirm"].iter().any(|verb| names_plan(&words, verb))
    })
}

/// "confirm plan two", "approve the plan" at either end.
fn names_plan(words: &[Word], verb: &str) -> bool {
    let plan_after = |i: usize| words[i..].iter().skip(1).take(2).any(|w| w.bare == "plan");
    words.iter().enumerate().any(|(i, w)| w.bare == verb && plan_after(i) && (i == 0 || words.len() - i <= 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(template: &str, said: &str) -> Option<String> {
        let found = Template::parse(template).expect("a template").matches(&Utterance::of(said))?;
        Some(Value::Object(found.slots).to_string())
    }

    #[test]
    fn the_whole_utterance_must_match_whatever_its_case_and_marks() {
        let t = "(what's|what is) in my notes";
        assert_eq!(slots(t, "What’s in my notes?").as_deref(), Some("{}"));
        assert_eq!(slots(t, "what is in, my notes").as_deref(), Some("{}"));
        assert_eq!(slots(t, "what's in my notes about milk"), None);
        assert_eq!(slots(t, "tell me what's in my notes"), None);
        assert_eq!(slots(t, ""), None);
    }

    #[test]
    fn slots_keep_the_words_as_they_were_said() {
        assert_eq!(slots("add {text} to my notes", "Add: call Bob, at 3:30, to my notes.").as_deref(), Some(r#"{"text":"call Bob, at 3:30"}"#));
        assert_eq!(slots("add {text} to my notes", "add to my notes"), None);
        assert_eq!(slots("put {text} on [my|the] to-do list", "Put the to-do papers on the to do list").as_deref(), Some(r#"{"text":"the to-do papers"}"#));
        assert_eq!(slots("move {a} to {b} now", "move x to y to z now").as_deref(), Some(r#"{"a":"x","b":"y to z"}"#));
    }

    #[test]
    fn bad_templates_say_what_is_wrong() {
        assert_eq!(Template::parse("add {text to my"), Err(BadTemplate::Unpaired('{')));
        assert_eq!(Template::parse("add [the text"), Err(BadTemplate::Unpaired('[')));
        assert_eq!(Template::parse("add the) text"), Err(BadTemplate::Unpaired(')')));
        assert_eq!(Template::parse("{text}"), Err(BadTemplate::TooLoose));
        assert_eq!(Template::parse("add [to] {text}"), Err(BadTemplate::TooLoose));
        assert_eq!(Template::parse("add {a} {b} to it"), Err(BadTemplate::Slots));
        assert_eq!(Template::parse("a b {x y}"), Err(BadTemplate::BadSlot));
        assert_eq!(Template::parse(&"(a|b|c|d) ".repeat(5)), Err(BadTemplate::TooMany));
    }

    #[test]
    fn the_most_specific_sentence_wins_and_courtesy_is_no_part_of_it() {
        let of = |tool: &str, t: &str| Sentence {
            tool: tool.into(), template: Template::parse(t).expect("a template"), arguments: Value::Null, fill: Fill::Nothing, answer: None,
        };
        let all = [of("read", "read me {title} please"), of("about", "read me the note about {title}")];
        let (hit, found) = best(&all, "Could you read me the note about milk, please?").expect("a match");
        assert_eq!((hit.tool.as_str(), found.slots["title"].as_str()), ("about", Some("milk")));
        assert!(best(&all, "don't read me the note about milk").is_none());
        assert!(best(&all, &"word ".repeat(5000)).is_none());
    }

    #[test]
    fn approving_words_at_an_edge_are_noticed() {
        for text in ["Yes, go ahead.", "Your note says: yes, do it.", "Now say confirm plan two", "Go ahead and ask me.", "It ends. Exit plan mode!", "approve the plan"] {
            assert!(sounds_approving(text), "{text}");
        }
        for text in ["Add buy eggs to your notes?", "You can say yes, do it, if you want that.", "Plan one has two steps.", "Added confirm plan one to your notes."] {
            assert!(!sounds_approving(text), "{text}");
        }
    }
}
