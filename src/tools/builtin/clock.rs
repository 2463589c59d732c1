//! What time it is here, in words that can be said.
//!
//! The time zone is the machine's, asked of the `date` program: the standard library knows only UTC. Where there is no such
//! program the answer is UTC and says so.
#![allow(clippy::disallowed_methods, reason = "the tool that tells the time")]

use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::BuiltinContext;
use crate::engine::tool::ToolOutcome;

const ONES: [&str; 20] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
];
const ORDINALS: [&str; 20] = [
    "zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth",
    "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
];
const TENS: [&str; 6] = ["", "", "twenty", "thirty", "forty", "fifty"];
const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
];
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// A moment on a wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wall { year: i64, month: u32, day: u32, hour: u32, minute: u32, local: bool }

/// `{time, date, zone, spoken_time, spoken_date}`.
pub fn now(_: &BuiltinContext, _: &Value) -> ToolOutcome {
    let wall = local().unwrap_or_else(|| utc(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)));
    ToolOutcome::ok(told(wall))
}

fn told(w: Wall) -> Value {
    json!({
        "success": true, "time": format!("{:02}:{:02}", w.hour, w.minute), "date": format!("{:04}-{:02}-{:02}", w.year, w.month, w.day),
        "zone": if w.local { "local" } else { "UTC" }, "spoken_time": spoken_time(w), "spoken_date": spoken_date(w),
    })
}

fn local() -> Option<Wall> {
    let out = Command::new("date").arg("+%Y %m %d %H %M").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    let parts: Vec<u32> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    match parts[..] {
        [year, month @ 1..=12, day @ 1..=31, hour @ 0..=23, minute @ 0..=59] => Some(Wall { year: year.into(), month, day, hour, minute, local: true }),
        _ => None,
    }
}

/// Calendar of the Gregorian calendar from seconds since 1970 (years counted from March, 400-year cycles of 146,097 days).
fn utc(seconds: i64) -> Wall {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400) as u32);
    let shifted = days + 719_468;
    let (cycle, in_cycle) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_cycle = (in_cycle - in_cycle / 1_460 + in_cycle / 36_524 - in_cycle / 146_096) / 365;
    let in_year = in_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let from_march = (5 * in_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_cycle + cycle * 400 + i64::from(month <= 2);
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    Wall { year, month: month as u32, day: day as u32, hour: rest / 3600, minute: rest / 60 % 60, local: false }
}

/// Days since 1970 of a date; the inverse of [`utc`].
fn day_number(w: Wall) -> i64 {
    let (year, month) = (w.year - i64::from(w.month <= 2), i64::from(w.month));
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let in_year = (153 * from_march + 2) / 5 + i64::from(w.day) - 1;
    let in_cycle = year.rem_euclid(400) * 365 + year.rem_euclid(400) / 4 - year.rem_euclid(400) / 100 + in_year;
    year.div_euclid(400) * 146_097 + in_cycle - 719_468
}

fn number(n: u32, ones: &[&str; 20]) -> String {
    match (n, n % 10) {
        (0..=19, _) => ones[n as usize].to_string(),
        (_, 0) if ones == &ORDINALS => format!("{}ieth", TENS[n as usize / 10].trim_end_matches('y')),
        (_, 0) => TENS[n as usize / 10].to_string(),
        (_, one) => format!("{} {}", TENS[n as usize / 10], ones[one as usize]),
    }
}

fn spoken_time(w: Wall) -> String {
    let part = match w.hour { 0..=11 => "in the morning", 12..=17 => "in the afternoon", _ => "in the evening" };
    let hour = number((w.hour + 11) % 12 + 1, &ONES);
    let zone = if w.local { "" } else { ", Universal Time" };
    match (w.hour, w.minute) {
        (0, 0) => format!("midnight{zone}"),
        (12, 0) => format!("noon{zone}"),
        (_, 0) => format!("{hour} o'clock {part}{zone}"),
        (_, minute @ 1..=9) => format!("{hour} oh {} {part}{zone}", number(minute, &ONES)),
        (_, minute) => format!("{hour} {} {part}{zone}", number(minute, &ONES)),
    }
}

fn spoken_date(w: Wall) -> String {
    let weekday = DAYS[day_number(w).rem_euclid(7) as usize];
    format!("{weekday}, {} {}", MONTHS[w.month as usize - 1], number(w.day, &ORDINALS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_dates_are_said_in_words() {
        let at = |hour, minute| spoken_time(Wall { year: 2026, month: 11, day: 30, hour, minute, local: true });
        assert_eq!(at(15, 25), "three twenty five in the afternoon");
        assert_eq!(at(0, 0), "midnight");
        assert_eq!(at(12, 0), "noon");
        assert_eq!(at(9, 5), "nine oh five in the morning");
        assert_eq!(at(20, 0), "eight o'clock in the evening");
        assert_eq!(at(23, 40), "eleven forty in the evening");
        assert_eq!(spoken_date(utc(1_796_000_000)), "Monday, November thirtieth");
    }

    #[test]
    fn the_calendar_goes_there_and_back() {
        for day in (-200_000..200_000).step_by(97) {
            assert_eq!(day_number(utc(day * 86_400)), day);
        }
        let leap = utc(951_782_400);
        assert_eq!((leap.year, leap.month, leap.day), (2000, 2, 29));
    }

    #[test]
    fn this_machine_has_a_time() {
        let out = now(&BuiltinContext::default(), &json!({})).output;
        assert!(out["time"].as_str().is_some_and(|t| t.len() == 5) && out["date"].as_str().is_some_and(|d| d.starts_with("20")), "{out}");
    }
}
