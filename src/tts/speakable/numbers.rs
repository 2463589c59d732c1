//! Numbers with a shape: money, dates, times of day, versions and addresses of digits.
//!
//! Owns how each is said. Called by `words` for a word without the marks around it. Plain numbers are left to the voice.

const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
];

/// The word as it is said, if it has one of the shapes.
pub fn shaped(core: &str) -> Option<String> {
    money(core).or_else(|| date(core)).or_else(|| times(core)).or_else(|| version(core)).or_else(|| fraction(core)).or_else(|| long_code(core))
}

fn digits(text: &str) -> bool { !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) }

/// `$5.20`, `€3`, `£1,000`.
fn money(core: &str) -> Option<String> {
    let (one, many, cent, cents) = match core.chars().next()? {
        '$' => ("dollar", "dollars", "cent", "cents"),
        '\u{20ac}' => ("euro", "euros", "cent", "cents"),
        '\u{a3}' => ("pound", "pounds", "penny", "pence"),
        _ => return None,
    };
    let amount = core.trim_start_matches(['$', '\u{20ac}', '\u{a3}']);
    let (whole, part) = amount.split_once('.').unwrap_or((amount, ""));
    if !digits(&whole.replace(',', "")) || !whole.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let wholes = format!("{whole} {}", if whole == "1" { one } else { many });
    match part {
        "" | "0" | "00" => Some(wholes),
        _ if !digits(part) => None,
        _ if part.len() != 2 => Some(format!("{amount} {many}")),
        _ => {
            let part = part.trim_start_matches('0');
            let small = format!("{part} {}", if part == "1" { cent } else { cents });
            Some(if whole == "0" { small } else { format!("{wholes} and {small}") })
        }
    }
}

/// `2026-11-30`.
fn date(core: &str) -> Option<String> {
    let mut parts = core.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || !(digits(year) && digits(month) && digits(day)) || (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let month = MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
    let day: u32 = day.parse().ok().filter(|d| (1..=31).contains(d))?;
    Some(format!("{month} {day}, {year}"))
}

/// `12:30`, `7:05`, `9:00:15`, `10:30-11:00`, and ratios such as `16:9`.
fn times(core: &str) -> Option<String> {
    if let Some((from, to)) = core.split_once(['-', '\u{2013}']) {
        return Some(format!("{} to {}", time(from)?, time(to)?));
    }
    let (a, b) = core.split_once(':')?;
    time(core).or_else(|| (digits(a) && digits(b)).then(|| format!("{a} to {b}")))
}

fn time(core: &str) -> Option<String> {
    let bare = core.trim_end_matches(['a', 'p', 'm', 'A', 'P', 'M']);
    let half = match &core[bare.len()..] {
        "" => "",
        "am" | "AM" => " A M",
        "pm" | "PM" => " P M",
        _ => return None,
    };
    let parts: Vec<&str> = bare.split(':').collect();
    let fits = |part: &str, most: u32| digits(part) && part.len() == 2 && part.parse::<u32>().is_ok_and(|n| n <= most);
    let [hours, minutes, ..] = parts.as_slice() else { return None };
    if !(1..=2).contains(&hours.len()) || !digits(hours) || hours.parse::<u32>().ok()? > 24 || !fits(minutes, 59) || parts.len() > 3 {
        return None;
    }
    let hour = hours.trim_start_matches('0');
    let hour = if hour.is_empty() { "0" } else { hour };
    let said = match (*minutes, half) {
        ("00", "") => format!("{hour} o'clock"),
        ("00", half) => format!("{hour}{half}"),
        (minutes, half) if minutes.starts_with('0') => format!("{hour} oh {}{half}", &minutes[1..]),
        (minutes, half) => format!("{hour} {minutes}{half}"),
    };
    match parts.get(2) {
        Some(seconds) if fits(seconds, 59) => Some(format!("{said} and {} seconds", seconds.parse::<u32>().ok()?)),
        Some(_) => None,
        None => Some(said),
    }
}

/// `v1.2.3`, `1.2.3`, `127.0.0.1:8710`.
fn version(core: &str) -> Option<String> {
    let (named, rest) = match core.strip_prefix(['v', 'V']) {
        Some(rest) => (true, rest),
        None => (false, core),
    };
    let (number, port) = rest.split_once(':').map_or((rest, None), |(n, p)| (n, Some(p)));
    let parts: Vec<&str> = number.split('.').collect();
    let enough = if named { 1 } else { 3 };
    if parts.len() < enough || !parts.iter().all(|p| digits(p)) || port.is_some_and(|p| !digits(p)) {
        return None;
    }
    let dotted = parts.join(if named && parts.len() == 2 { " point " } else { " dot " });
    Some(format!("{}{dotted}{}", if named { "version " } else { "" }, port.map_or(String::new(), |p| format!(", port {p}"))))
}

/// `3/4`, and `24/7`.
fn fraction(core: &str) -> Option<String> {
    let (a, b) = core.split_once('/')?;
    (digits(a) && digits(b)).then(|| if core == "24/7" { "24 7".into() } else { format!("{a} over {b}") })
}

/// Hashes and ids of 16 characters and more: nobody would remember them.
fn long_code(core: &str) -> Option<String> {
    let plain: String = core.chars().filter(|c| *c != '-').collect();
    let hex = plain.len() >= 16 && plain.bytes().all(|b| b.is_ascii_hexdigit());
    (hex && plain.bytes().any(|b| b.is_ascii_digit()) && plain.bytes().any(|b| b.is_ascii_alphabetic())).then(|| "a long code".into())
}
