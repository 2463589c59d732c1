//! The line under `voxgate talk`: how loud the microphone is, the mode, what the voice does, the last words.
//!
//! Owns what is shown and one line of the terminal, drawn anew ten times a second. Called by `talk` alone. Writes nothing where
//! stderr is no terminal: a log is no place for a line that changes.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::engine::mode::Posture;
use crate::media::level::rms_dbfs;
use crate::session::card::{Card, CardNews, Microphone};
use crate::session::driver::FrameSink;
use crate::session::handle::Handle;

/// Widest line, in characters: fits the usual terminal of 80.
const WIDTH: usize = 78;
/// Width of the bar.
const BAR: usize = 12;
/// Levels at the bar's ends, in dBFS: a quiet room and a shout.
const RANGE: (i32, i32) = (-60, -6);
/// Time between two drawings.
const EVERY: Duration = Duration::from_millis(100);

/// What is shown beside the level.
#[derive(Clone, Debug, Default)]
struct Shown {
    plan: bool,
    voice: String,
    words: String,
}

/// See the file's head.
#[derive(Clone)]
pub struct Meter {
    shown: Arc<Mutex<Shown>>,
    /// Of the last frame, in dBFS.
    level: Arc<AtomicI32>,
}

impl Meter {
    /// A meter where stderr is a terminal; events go to it and to `also`.
    pub fn on_terminal(also: Option<FrameSink>) -> (Option<Meter>, Option<FrameSink>) {
        if !std::io::stderr().is_terminal() {
            return (None, also);
        }
        let meter = Meter::new();
        let (sees, mut also) = (meter.clone(), also);
        let sink: FrameSink = Box::new(move |line: &str| {
            sees.event(line);
            if let Some(also) = &mut also { also(line) }
        });
        (Some(meter), Some(sink))
    }

    fn new() -> Self { Self { shown: Arc::default(), level: Arc::new(AtomicI32::new(RANGE.0)) } }

    /// The card, with its microphone's level seen.
    pub fn listening(&self, card: Card) -> Card {
        Card::new(Box::new(Metered { mic: card.mic, level: self.level.clone() }), card.speaker)
    }

    fn event(&self, line: &str) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let payload = &event["payload"];
        let text = |field: &str| payload[field].as_str().unwrap_or_default().to_string();
        match event["type"].as_str() {
            Some("plan_mode") => shown.plan = payload["plan_mode"] == true,
            Some("voice_state") => shown.voice = text("state"),
            Some("transcript") => shown.words = format!("{}: {}", if text("role") == "user" { "you" } else { "voxgate" }, text("text")),
            Some("notice") => shown.words = text("message"),
            _ => {}
        }
    }

    fn line(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let line = format!("[{}] {} | {:9} | {}", bar(self.level.load(Ordering::Relaxed)), if shown.plan { "PLAN" } else { "act " }, shown.voice, shown.words);
        // What was said is a person's or a model's: nothing of it moves the cursor.
        line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WIDTH).collect()
    }

    /// Draws until it is dropped; without a meter it only waits. `handle`: of the conversation, which may have been in plan mode before.
    pub async fn draw(meter: Option<Meter>, handle: &Handle) {
        let Some(meter) = meter else { return std::future::pending().await };
        if let Ok(before) = handle.snapshot().await {
            meter.shown.lock().unwrap_or_else(PoisonError::into_inner).plan = before.stamp.posture == Posture::Plan;
        }
        let mut line = Line;
        loop {
            line.put(&meter.line());
            tokio::time::sleep(EVERY).await;
        }
    }
}

/// The terminal's last line. It is left empty.
struct Line;

impl Line {
    fn put(&mut self, text: &str) {
        let _ = write!(std::io::stderr(), "\r\x1b[2K{text}");
    }
}

impl Drop for Line {
    fn drop(&mut self) { self.put("") }
}

fn bar(level_dbfs: i32) -> String {
    let part = (level_dbfs.clamp(RANGE.0, RANGE.1) - RANGE.0) as usize * BAR / (RANGE.1 - RANGE.0) as usize;
    format!("{}{}", "#".repeat(part), ".".repeat(BAR - part))
}

/// A microphone whose level is seen.
struct Metered {
    mic: Box<dyn Microphone>,
    level: Arc<AtomicI32>,
}

impl Microphone for Metered {
    fn next_frame(&mut self) -> BoxFuture<'_, Vec<i16>> {
        Box::pin(async {
            let frame = self.mic.next_frame().await;
            if !frame.is_empty() { self.level.store(rms_dbfs(&frame) as i32, Ordering::Relaxed) }
            frame
        })
    }

    fn news(&mut self) -> Option<CardNews> { self.mic.news() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_level_mode_voice_and_words() {
        let meter = Meter::new();
        meter.event(r#"{"type":"voice_state","payload":{"state":"listening"}}"#);
        meter.event(r#"{"type":"transcript","payload":{"role":"user","text":"enter\u001b[2J plan\nmode"}}"#);
        assert_eq!(meter.line(), "[............] act  | listening | you: enter [2J plan mode");
        meter.event(r#"{"type":"plan_mode","payload":{"plan_mode":true}}"#);
        meter.level.store(-6, Ordering::Relaxed);
        assert!(meter.line().starts_with("[############] PLAN | listening"), "{}", meter.line());
        meter.event("no event");
        meter.event(&format!(r#"{{"type":"notice","payload":{{"message":"{}"}}}}"#, "long ".repeat(90)));
        assert_eq!(meter.line().chars().count(), WIDTH);
        assert_eq!((bar(-120), bar(-33)), (".".repeat(12), format!("{}{}", "#".repeat(6), ".".repeat(6))));
    }
}
