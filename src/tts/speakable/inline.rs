//! Marks inside a line: links, images, code, emphasis, HTML, footnotes.
//!
//! Owns their removal. Called by `speakable` for each line. Never touches a mark that is plain text (2 * 3, snake_case).

/// The line without inline marks.
pub fn plain(line: &str) -> String {
    let line = without_tags(line);
    let mut out = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(c) = rest.chars().next() {
        if let Some((said, after)) = link(rest) {
            out.push_str(&said);
            rest = after;
            continue;
        }
        let (run, after) = rest.split_at(c.len_utf8());
        match c {
            '\\' if after.starts_with(|n: char| n.is_ascii_punctuation()) => {
                let (escaped, after) = after.split_at(1);
                out.push_str(escaped);
                rest = after;
                continue;
            }
            '`' => {}
            '*' | '_' | '~' if is_emphasis(&out, rest, c) => {
                rest = rest.trim_start_matches(c);
                continue;
            }
            _ => out.push_str(run),
        }
        rest = after;
    }
    out
}

/// `[text](url)`, `[text][ref]`, `![alt](url)`, `[^1]`, `<https://...>` at the start of `rest`: what is said, and what follows.
fn link(rest: &str) -> Option<(String, &str)> {
    let (image, inner) = match rest.strip_prefix("![") {
        Some(inner) => (true, inner),
        None => (false, rest.strip_prefix('[')?),
    };
    let (text, after) = inner.split_at(inner.find(']')?);
    let after = &after[1..];
    if !image && text.starts_with('^') {
        return Some((String::new(), after));
    }
    let target = after.strip_prefix('(').and_then(|t| Some(&t[t.find(')')? + 1..]))
        .or_else(|| after.strip_prefix('[').and_then(|t| Some(&t[t.find(']')? + 1..])));
    match (target, image) {
        (Some(after), true) if text.is_empty() => Some(("an image".into(), after)),
        (Some(after), true) => Some((format!("an image: {}", plain(text)), after)),
        (Some(after), false) => Some((plain(text), after)),
        (None, _) => None,
    }
}

/// A run of marks is emphasis unless it stands between spaces (2 * 3) or, for underscores, inside a word (snake_case).
fn is_emphasis(before: &str, rest: &str, mark: char) -> bool {
    let run = rest.chars().take_while(|c| *c == mark).count();
    let next = rest.chars().nth(run);
    let last = before.chars().next_back();
    let space = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    match mark {
        '~' => run >= 2,
        '_' => !(word(last) && word(next)) && !(space(last) && space(next)),
        // Between digits it is a product.
        _ => !(space(last) && space(next)) && !(last.is_some_and(|c| c.is_ascii_digit()) && next.is_some_and(|c| c.is_ascii_digit())),
    }
}

/// HTML tags and comments go, common entities become their characters.
fn without_tags(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let tag = rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!');
        let Some(end) = rest.find('>').filter(|_| tag) else {
            out.push('<');
            rest = &rest[1..];
            continue;
        };
        let inner = &rest[1..end];
        if inner.contains("://") && !inner.contains(' ') {
            out.push_str(inner);
        } else if inner.starts_with("br") || inner.starts_with("/p") {
            out.push(' ');
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    for (entity, c) in [("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")] {
        out = out.replace(entity, c);
    }
    out
}
