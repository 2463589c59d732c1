//! What hearing costs, by conversation: seconds of a recogniser's work, for `/metrics`.
//!
//! Owns one line for each conversation that runs and one for all that have ended, so the list never grows beyond what runs. The
//! driver writes, the door reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The figure's name.
const NAME: &str = "voxgate_session_recognition_seconds_total";

#[derive(Debug)]
struct Book {
    running: BTreeMap<String, (usize, Duration)>,
    ended: Duration,
}

static BOOK: Mutex<Book> = Mutex::new(Book { running: BTreeMap::new(), ended: Duration::ZERO });

fn book() -> std::sync::MutexGuard<'static, Book> { BOOK.lock().unwrap_or_else(PoisonError::into_inner) }

/// A running conversation's line; it goes into the sum of the ended ones when this is dropped.
#[derive(Debug)]
pub struct Meter(String);

impl Meter {
    /// Begins a line.
    pub fn of(session: &str) -> Self {
        book().running.entry(session.to_string()).or_default().0 += 1;
        Self(session.to_string())
    }

    /// Adds a recognition's work.
    pub fn add(&self, work: Duration) {
        if let Some((_, spent)) = book().running.get_mut(&self.0) { *spent += work }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let mut book = book();
        let Some((holders, spent)) = book.running.get_mut(&self.0) else { return };
        *holders -= 1;
        if *holders == 0 {
            let spent = *spent;
            book.running.remove(&self.0);
            book.ended += spent;
        }
    }
}

/// The lines as Prometheus reads them.
pub fn lines() -> String {
    let book = book();
    let mut out = format!("# HELP {NAME} Work of the recognisers, by conversation.\n# TYPE {NAME} counter\n");
    for (session, (_, spent)) in &book.running {
        let _ = writeln!(out, "{NAME}{{session=\"{session}\"}} {:.3}", spent.as_secs_f64());
    }
    let _ = writeln!(out, "{NAME}{{session=\"ended\"}} {:.3}", book.ended.as_secs_f64());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_lives_as_long_as_its_conversation() {
        let meter = Meter::of("sess_cost_test");
        meter.add(Duration::from_millis(1_500));
        let again = Meter::of("sess_cost_test");
        assert!(lines().contains("{session=\"sess_cost_test\"} 1.500\n"), "{}", lines());
        drop(meter);
        assert!(lines().contains("sess_cost_test"));
        drop(again);
        assert!(!lines().contains("sess_cost_test") && lines().contains("{session=\"ended\"}"), "{}", lines());
    }
}
