//! Words that are written for the eye: addresses, paths, names with marks, times, units, signs, emoji.
//!
//! Owns how each is said. Called by `speakable` with a line free of markdown. Never spells a long address out.

/// The line with every word sayable, single spaces between them.
pub fn sayable(line: &str) -> String {
    let line: String = line.chars().map(even).collect();
    let mut out: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let said = after_number(out.last(), word).unwrap_or_else(|| say(word));
        if said.is_empty() {
            continue;
        }
        // Marks that lost their word go to the word before.
        match out.last_mut() {
            Some(previous) if said.chars().all(|c| ".,!?;:".contains(c)) => {
                if !previous.ends_with(['.', '!', '?', ',', ';', ':']) {
                    previous.push_str(&said);
                }
            }
            None if !said.contains(char::is_alphanumeric) => {}
            _ => out.push(said),
        }
    }
    out.join(" ")
}

/// A unit that stands apart from its number. Single letters are left alone: "take 2 m" is rare, "plan 2 s" is a slip.
fn after_number(previous: Option<&String>, word: &str) -> Option<String> {
    let core = word.trim_end_matches(['.', ',', '!', '?', ';', ':', ')']);
    let number = previous?.rsplit(' ').next().filter(|n| n.ends_with(|c: char| c.is_ascii_digit()))?;
    let (one, many) = unit(core).filter(|_| core.len() > 1 && core != "us")?;
    Some(format!("{}{}", if number == "1" { one } else { many }, &word[core.len()..].replace(')', "")))
}

/// One spelling for quotes, dashes and spaces; emoji and private characters become spaces.
fn even(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2012}' => '-',
        c if is_picture(c) || c.is_control() => ' ',
        c => c,
    }
}

/// Emoji, dingbats, box drawing, variation selectors, private use, zero-width characters.
fn is_picture(c: char) -> bool {
    matches!(u32::from(c),
        0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x2064 | 0x20d0..=0x20ff | 0x2300..=0x23ff | 0x2500..=0x27bf | 0x2b00..=0x2bff
        | 0xe000..=0xf8ff | 0xfe00..=0xfe0f | 0xfeff | 0xfff9..=0xfffd | 0x1f000..=0x1faff | 0xe0000..=0x10ffff)
}

/// A word with its marks around it.
fn say(word: &str) -> String {
    let core = word.trim_start_matches(['"', '(', '[', '{', '\'']);
    let opening = word.len() - core.len();
    let core = core.trim_end_matches(['"', ')', ']', '}', '\'', '.', ',', '!', '?', ';', ':', '\u{2026}']);
    let closing: String = word[opening + core.len()..].chars().filter(|c| ".,!?;:\u{2026}".contains(*c)).collect();
    if core.is_empty() {
        return closing;
    }
    if let Some(said) = abbreviation(core) {
        // Its last dot is its own; of what follows, a comma stays.
        let last = word[opening + core.len()..].trim_start_matches('.');
        return format!("{said}{}", last.chars().filter(|c| ",!?;:".contains(*c)).collect::<String>());
    }
    let said = sign(core).map(str::to_owned)
        .or_else(|| address(core))
        .or_else(|| super::numbers::shaped(core))
        .or_else(|| path(core))
        .or_else(|| quantity(core))
        .unwrap_or_else(|| name(core));
    format!("{said}{closing}")
}

/// Abbreviations that are said in full, without their last dot.
fn abbreviation(core: &str) -> Option<&'static str> {
    Some(match core {
        "e.g" | "E.g" => "for example",
        "i.e" | "I.e" => "that is",
        "vs" => "versus",
        "approx" => "about",
        "w/o" => "without",
        "w/" => "with",
        "I/O" | "i/o" => "I O",
        _ => return None,
    })
}

/// A word that is only a sign.
fn sign(core: &str) -> Option<&'static str> {
    Some(match core {
        "&" => "and",
        "+" => "plus",
        "=" | "==" => "equals",
        "!=" | "\u{2260}" => "is not",
        "<" => "is less than",
        ">" => "is more than",
        "<=" | "\u{2264}" => "is at most",
        ">=" | "\u{2265}" => "is at least",
        "\u{d7}" | "*" => "times",
        "\u{f7}" => "divided by",
        "\u{2248}" | "~" => "about",
        "->" | "=>" | "\u{2192}" | "\u{21d2}" => "to",
        "<-" | "\u{2190}" => "from",
        "/" => "or",
        "@" => "at",
        "%" => "percent",
        "\u{2014}" | "\u{2013}" | "-" | "--" => ",",
        "|" | "#" | "$" | "^" | "_" | "\\" | "---" | "***" => "",
        _ => return None,
    })
}

/// Web and mail addresses.
fn address(core: &str) -> Option<String> {
    if let Some((scheme, rest)) = core.split_once("://") {
        if !scheme.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return None;
        }
        let host = rest.split(['/', '?', '#']).next().unwrap_or("");
        let host = host.rsplit('@').next().unwrap_or("").split(':').next().unwrap_or("");
        let host = host.strip_prefix("www.").unwrap_or(host);
        return Some(if !is_address_part(host) { "a link".into() } else { format!("a link to {}", dotted(host)) });
    }
    if let Some((user, host)) = core.split_once('@')
        && host.contains('.') && [user, host].iter().all(|p| is_address_part(p)) {
            return Some(format!("{} at {}", dotted(user), dotted(host)));
    }
    let host = core.strip_prefix("www.")?.split('/').next()?;
    is_address_part(host).then(|| dotted(host))
}

fn is_address_part(part: &str) -> bool {
    part.starts_with(char::is_alphanumeric) && part.chars().all(|c| c.is_alphanumeric() || "._-+".contains(c))
}

/// File paths: the last two parts, the rest would not be remembered.
fn path(core: &str) -> Option<String> {
    // A place in a file: "src/main.rs:42".
    if let Some((file, line)) = core.rsplit_once(':').filter(|(f, l)| !l.is_empty() && l.bytes().all(|b| b.is_ascii_digit()) && extension(f).is_some()) {
        return Some(format!("{}, line {line}", path(file).unwrap_or_else(|| name(file))));
    }
    let rooted = core.starts_with('/') || core.starts_with("~/") || core.starts_with("./") || core.starts_with("../") || core.get(1..3) == Some(":\\");
    let parts: Vec<&str> = core.split(['/', '\\']).filter(|p| !matches!(*p, "" | "." | ".." | "~")).collect();
    let file = parts.last().is_some_and(|p| extension(p).is_some());
    if parts.is_empty() || !(rooted || (parts.len() > 2 && !core.contains("://")) || (parts.len() == 2 && file)) {
        return None;
    }
    if parts.len() > 2 && !rooted && !file {
        // read/write/execute is a choice, not a path.
        return Some(parts.iter().map(|p| name(p)).collect::<Vec<_>>().join(" or "));
    }
    let last: Vec<String> = parts[parts.len().saturating_sub(2)..].iter().map(|p| name(p)).collect();
    Some(match last.as_slice() {
        [folder, file] => format!("{file} in {folder}"),
        _ => last.concat(),
    })
}

/// Numbers with a unit or a sign, times, ranges.
fn quantity(core: &str) -> Option<String> {
    if let Some(rest) = core.strip_prefix(['~', '\u{2248}']).filter(|r| r.starts_with(|c: char| c.is_ascii_digit())) {
        return Some(format!("about {}", quantity(rest).unwrap_or_else(|| name(rest))));
    }
    if let Some(rest) = core.strip_prefix(['-', '\u{2212}']).filter(|r| r.starts_with(|c: char| c.is_ascii_digit())) {
        return Some(format!("minus {}", quantity(rest).unwrap_or_else(|| name(rest))));
    }
    if let Some(rest) = core.strip_prefix('#').filter(|r| !r.is_empty() && r.bytes().all(|b| b.is_ascii_digit())) {
        return Some(format!("number {rest}"));
    }
    let digits = core.bytes().take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b',')).count();
    if digits == 0 || !core.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (number, rest) = core.split_at(digits);
    let number = number.trim_end_matches(['.', ',']);
    if let Some(to) = rest.strip_prefix(['-', '\u{2013}', '\u{2014}']).filter(|t| t.starts_with(|c: char| c.is_ascii_digit())) {
        // A date has two dashes, a range one.
        return (!to.contains('-')).then(|| format!("{number} to {}", quantity(to).unwrap_or_else(|| name(to))));
    }
    if let Some(factor) = rest.strip_prefix(['\u{d7}', '*']).filter(|t| t.starts_with(|c: char| c.is_ascii_digit())) {
        return Some(format!("{number} times {}", quantity(factor).unwrap_or_else(|| name(factor))));
    }
    unit(rest).map(|(one, many)| format!("{number} {}", if number == "1" { one } else { many }))
}

/// What a unit behind a number is called, for one and for many.
fn unit(mark: &str) -> Option<(&'static str, &'static str)> {
    Some(match mark {
        "%" => ("percent", "percent"),
        "\u{b0}" => ("degree", "degrees"),
        "\u{b0}C" => ("degree Celsius", "degrees Celsius"),
        "\u{b0}F" => ("degree Fahrenheit", "degrees Fahrenheit"),
        "ns" => ("nanosecond", "nanoseconds"),
        "\u{b5}s" | "\u{3bc}s" | "us" => ("microsecond", "microseconds"),
        "ms" => ("millisecond", "milliseconds"),
        "s" | "sec" => ("second", "seconds"),
        "min" => ("minute", "minutes"),
        "h" => ("hour", "hours"),
        "mm" => ("millimeter", "millimeters"),
        "cm" => ("centimeter", "centimeters"),
        "m" => ("meter", "meters"),
        "km" => ("kilometer", "kilometers"),
        "km/h" => ("kilometer per hour", "kilometers per hour"),
        "g" => ("gram", "grams"),
        "kg" => ("kilogram", "kilograms"),
        "l" | "L" => ("liter", "liters"),
        "ml" | "mL" => ("milliliter", "milliliters"),
        "B" => ("byte", "bytes"),
        "kB" | "KB" => ("kilobyte", "kilobytes"),
        "KiB" => ("kibibyte", "kibibytes"),
        "MB" => ("megabyte", "megabytes"),
        "MiB" => ("mebibyte", "mebibytes"),
        "GB" => ("gigabyte", "gigabytes"),
        "GiB" => ("gibibyte", "gibibytes"),
        "TB" => ("terabyte", "terabytes"),
        "Hz" => ("hertz", "hertz"),
        "kHz" => ("kilohertz", "kilohertz"),
        "MHz" => ("megahertz", "megahertz"),
        "GHz" => ("gigahertz", "gigahertz"),
        "dB" => ("decibel", "decibels"),
        "W" => ("watt", "watts"),
        "kW" => ("kilowatt", "kilowatts"),
        "kWh" => ("kilowatt hour", "kilowatt hours"),
        "V" => ("volt", "volts"),
        "x" | "\u{d7}" => ("time", "times"),
        "\u{20ac}" => ("euro", "euros"),
        _ => return None,
    })
}

/// Everything else: names with marks inside (snake_case, notes.txt, a::b, f()), marks that cannot be said dropped.
fn name(core: &str) -> String {
    let core = core.strip_suffix("()").unwrap_or(core);
    let core = match extension(core) {
        Some((stem, ending)) => format!("{stem} dot {ending}"),
        None => core.into(),
    };
    let mut out = String::with_capacity(core.len());
    for c in core.replace("::", " ").replace("--", " ").replace("\u{2026}", "... ").chars() {
        match c {
            '_' | '\\' | '|' | '{' | '}' | '[' | ']' | '(' | ')' | '<' | '>' | '"' | '`' | '*' | '^' | '~' | '#' => out.push(' '),
            '\u{2014}' | '\u{2013}' => out.push_str(", "),
            '=' => out.push_str(" equals "),
            '&' => out.push_str(" and "),
            '+' => out.push_str(" plus "),
            '@' => out.push_str(" at "),
            '/' => out.push_str(" or "),
            c => out.push(c),
        }
    }
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ").replace(" , ", ", ");
    if said.contains(char::is_alphanumeric) { said } else { String::new() }
}

/// A file name's stem and its ending, said as letters where it is no word.
fn extension(word: &str) -> Option<(&str, String)> {
    let (stem, ending) = word.rsplit_once('.')?;
    let good = (1..=5).contains(&ending.len()) && ending.bytes().all(|b| b.is_ascii_alphanumeric()) && ending.bytes().any(|b| b.is_ascii_alphabetic());
    if stem.is_empty() || !good || stem.ends_with('.') || stem.contains('.') && stem.len() < 4 {
        return None;
    }
    // "e.g" and "p.m" are no files.
    if stem.len() == 1 && ending.len() == 1 {
        return None;
    }
    let said = match ending {
        "rs" | "js" | "ts" | "md" | "py" | "cs" | "pdf" | "csv" | "xml" | "html" | "css" | "png" | "jpg" | "svg" | "mp3" | "mp4" | "sql" | "cpp" => letters(ending),
        "tsv" | "xlsx" | "docx" | "pptx" | "yml" | "ini" | "sh" | "c" | "h" | "go" => if ending == "go" { ending.into() } else { letters(ending) },
        "txt" => "text".into(),
        "json" => "jason".into(),
        "jsonl" => "jason L".into(),
        "wav" => "wave".into(),
        other => other.into(),
    };
    Some((stem, said))
}

fn letters(word: &str) -> String {
    word.to_uppercase().chars().map(String::from).collect::<Vec<_>>().join(" ")
}

fn dotted(host: &str) -> String {
    host.replace('.', " dot ").replace(['-', '_'], " ")
}
