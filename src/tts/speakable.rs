//! Text made sayable: what is written for the eye becomes what can be heard, or is left out.
//!
//! Owns the rules for markdown, links, code, lists, tables, emoji, paths, numbers and units. Called on every segment before a
//! voice gets it; a segment may be a part of a document, so nothing relies on a mark being closed. Pure. Never adds an opinion:
//! what is left out is said to be there only where its absence would confuse (a block of code, an image).

mod inline;
mod numbers;
mod words;

/// What a block of code becomes.
const CODE_BLOCK: &str = "Here is a piece of code, which is on the screen.";

/// The text as it should be spoken: plain sentences on one line. Empty when nothing in it can be said.
pub fn speakable(text: &str) -> String {
    let mut sentences: Vec<String> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let bare = line.trim();
        if let Some(mark) = fence {
            if bare.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|m| bare.starts_with(m)) {
            // A fence that opens and closes on one line hides nothing that follows.
            fence = (!bare[mark.len()..].contains(mark)).then_some(mark);
            sentences.push(CODE_BLOCK.into());
            continue;
        }
        let (content, ends) = block(bare);
        let said = words::sayable(&inline::plain(&content));
        if !said.is_empty() {
            sentences.push(if ends { closed(said) } else { said });
        }
    }
    joined(&sentences)
}

/// A line without its block marks, and whether it is a sentence of its own (a heading, an item, a row).
fn block(line: &str) -> (String, bool) {
    let line = line.trim_start_matches(['>', ' ']);
    if is_rule(line) {
        return (String::new(), false);
    }
    let heading = line.trim_start_matches('#');
    if heading.len() < line.len() && (heading.is_empty() || heading.starts_with(' ')) {
        return (heading.trim_end_matches(['#', ' ']).into(), true);
    }
    if line.starts_with('|') && line.len() > 1 {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).filter(|c| !c.is_empty()).collect();
        return (cells.join(", "), true);
    }
    match item(line) {
        Some((number, content)) if !number.is_empty() => (format!("{number}: {content}"), true),
        Some((_, content)) => (content, true),
        None => (line.into(), false),
    }
}

/// A list item's number (empty for a bullet) and content, its checkbox as a word.
fn item(line: &str) -> Option<(&str, String)> {
    let bullet = ["- ", "* ", "+ ", "\u{2022} "].iter().find_map(|b| line.strip_prefix(b));
    let (number, rest) = match bullet {
        Some(rest) => ("", rest),
        None => {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let rest = line[digits..].strip_prefix(". ").or_else(|| line[digits..].strip_prefix(") "))?;
            ((1..=3).contains(&digits).then_some(&line[..digits])?, rest)
        }
    };
    let rest = rest.trim_start();
    let content = match rest.get(..3) {
        Some("[ ]") => format!("open: {}", &rest[3..].trim_start()),
        Some("[x]" | "[X]") => format!("done: {}", &rest[3..].trim_start()),
        _ => rest.into(),
    };
    Some((number, content))
}

/// A horizontal rule or the line under a table's head: marks only.
fn is_rule(line: &str) -> bool {
    line.chars().filter(|c| "-*_=".contains(*c)).count() >= 3 && line.chars().all(|c| "-*_=|: ".contains(c))
}

fn closed(mut said: String) -> String {
    if said.ends_with([',', ';', ':']) {
        said.pop();
    }
    if !said.ends_with(['.', '!', '?', '\u{2026}']) {
        said.push('.');
    }
    said
}

/// Lines joined by spaces; the same remark about code twice in a row is made once.
fn joined(sentences: &[String]) -> String {
    let mut out = String::new();
    let mut previous = "";
    for sentence in sentences {
        if sentence == previous && sentence == CODE_BLOCK {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(sentence);
        previous = sentence;
    }
    out
}

#[cfg(test)]
#[path = "speakable/tests.rs"]
mod tests;
