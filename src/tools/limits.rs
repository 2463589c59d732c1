//! Bounds: how often a tool may be called, and how much of a result an agent is given.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// Longest result for an agent, in characters of JSON. A todo echo is exempt: cut, the agent would lose items on its next write.
pub const OUTPUT_CHARS: usize = 8_192;
/// Most values in a result, containers counted.
pub const OUTPUT_NODES: usize = 512;
/// Longest list of a result whose manifest says `"result_budget": "feed"`.
const FEED_ITEMS: usize = 50;

/// How often, in how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub calls: u64,
    pub within: Duration,
}

/// A tool that is called more often than this is going round in circles.
pub(super) const PER_TOOL: Rate = Rate { calls: 10, within: Duration::from_secs(10) };
/// The rate of a skill's `max_calls_per_hour`.
pub(super) fn per_hour(calls: u64) -> Rate { Rate { calls, within: Duration::from_secs(3600) } }

/// Remembers when what was called; forgets what is out of its window.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    seen: HashMap<String, VecDeque<Instant>>,
}

impl Breaker {
    /// Counts a call under `key`; false when it is one too many (it is not counted then).
    pub fn admit(&mut self, key: &str, rate: Rate, now: Instant) -> bool {
        let times = self.seen.entry(key.to_string()).or_default();
        while times.front().is_some_and(|t| now.duration_since(*t) >= rate.within) {
            times.pop_front();
        }
        let room = (times.len() as u64) < rate.calls;
        if room {
            times.push_back(now);
        }
        room
    }
}

/// A result within the bounds. What is cut is said in `truncated`; success, codes and falsy values stay as they are.
pub fn cap_output(output: Value) -> Value { cap(output, usize::MAX) }

/// The same with lists of at most 50.
pub(super) fn cap_feed(output: Value) -> Value { cap(output, FEED_ITEMS) }

fn cap(output: Value, items: usize) -> Value {
    let (mut nodes, mut cut) = (OUTPUT_NODES, false);
    let mut best = prune(&output, usize::MAX, items, &mut nodes, &mut cut);
    let mut limit = OUTPUT_CHARS / 2;
    while best.to_string().chars().count() > OUTPUT_CHARS - 32 && limit >= 16 {
        nodes = OUTPUT_NODES;
        best = prune(&output, limit, items.min(limit), &mut nodes, &mut cut);
        limit /= 2;
    }
    if best.to_string().chars().count() > OUTPUT_CHARS - 32 {
        let keep = ["success", "is_error", "error_code", "outcome_unknown"];
        best = Value::Object(keep.iter().filter_map(|k| output.get(*k).map(|v| (k.to_string(), v.clone()))).collect::<Map<_, _>>());
        cut = true;
    }
    match (&mut best, cut) {
        (Value::Object(map), true) => { map.insert("truncated".into(), json!(true)); }
        (other, true) => *other = json!({"value": other.take(), "truncated": true}),
        _ => {}
    }
    best
}

fn prune(value: &Value, chars: usize, items: usize, nodes: &mut usize, cut: &mut bool) -> Value {
    *nodes = nodes.saturating_sub(1);
    match value {
        Value::String(text) if text.chars().count() > chars => {
            *cut = true;
            Value::from(format!("{}…", text.chars().take(chars).collect::<String>()))
        }
        Value::Array(list) => {
            let mut out = Vec::new();
            for item in list {
                if out.len() >= items || *nodes == 0 {
                    *cut = true;
                    break;
                }
                out.push(prune(item, chars, items, nodes, cut));
            }
            Value::Array(out)
        }
        Value::Object(map) => {
            let mut out = Map::new();
            for (key, item) in map {
                if *nodes == 0 {
                    *cut = true;
                    break;
                }
                out.insert(key.clone(), prune(item, chars, items, nodes, cut));
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_result_is_left_alone() {
        let small = json!({"success": true, "zero": 0, "no": false, "none": null, "empty": []});
        assert_eq!(cap_output(small.clone()), small);
    }

    #[test]
    fn a_large_result_is_cut_and_says_so() {
        for big in [
            json!({"success": false, "error_code": "x", "text": "a".repeat(100_000)}),
            json!({"success": false, "list": vec!["word"; 5_000]}),
            json!({"success": false, "deep": (0..600).map(|n| json!({"n": n, "t": "\"quoted\" text".repeat(20)})).collect::<Vec<_>>()}),
            Value::from("x".repeat(50_000)),
        ] {
            let out = cap_output(big.clone());
            assert!(out.to_string().chars().count() <= OUTPUT_CHARS, "{}", out.to_string().len());
            assert_eq!((out["truncated"].clone(), out["success"].clone()), (json!(true), big["success"].clone()));
        }
        assert_eq!(cap_feed(json!({"list": vec![0; 60]}))["list"].as_array().map(Vec::len), Some(50));
    }

    #[test]
    fn the_breaker_opens_at_the_eleventh_call_and_closes_with_time() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        assert!((0..10).all(|n| breaker.admit("t", PER_TOOL, start + Duration::from_millis(n))));
        assert!(!breaker.admit("t", PER_TOOL, start + Duration::from_secs(9)));
        assert!(breaker.admit("other", PER_TOOL, start + Duration::from_secs(9)));
        assert!(breaker.admit("t", PER_TOOL, start + Duration::from_secs(10)));
    }
}
