//! Everyone who watches a conversation: each event's frame is made once, kept a while for those who come back, and handed to all.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::handle::{MIRROR_QUEUE, MirrorItem, Subscription};
use crate::engine::snapshot::Snapshot;

/// Frames kept for mirrors that come back.
const KEPT: usize = 2_000;
/// Mirrors of one conversation at most.
const MIRRORS_MAX: usize = 64;

/// See the file's head.
#[derive(Default)]
pub struct Mirrors {
    kept: VecDeque<(u64, Arc<str>)>,
    followers: Vec<mpsc::Sender<MirrorItem>>,
}

impl Mirrors {
    /// How many watch.
    pub fn count(&self) -> usize { self.followers.len() }

    /// Hands a numbered frame out. A mirror whose queue is full is let go: it comes back with its `since`.
    pub fn frame(&mut self, seq: u64, text: Arc<str>) {
        self.kept.push_back((seq, text.clone()));
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
        let before = self.followers.len();
        self.followers.retain(|f| f.try_send(MirrorItem::Frame { seq, text: text.clone() }).is_ok());
        let gone = before - self.followers.len();
        if gone > 0 {
            metrics::counter!("voxgate_mirrors_let_go_total").increment(gone as u64);
        }
    }

    /// Hands something out that is not numbered; whoever is behind misses it.
    pub fn passing(&mut self, text: Arc<str>) {
        self.followers.retain(|f| !f.is_closed());
        for follower in &self.followers {
            let _ = follower.try_send(MirrorItem::Passing(text.clone()));
        }
    }

    /// A new mirror; with `since`, what it missed, where that is still kept.
    pub fn subscribe(&mut self, snapshot: Snapshot, since: Option<u64>) -> Subscription {
        let (tx, follow) = mpsc::channel(MIRROR_QUEUE);
        self.followers.retain(|f| !f.is_closed());
        if self.followers.len() >= MIRRORS_MAX {
            self.followers.remove(0);
        }
        self.followers.push(tx);
        let oldest = self.kept.front().map_or(snapshot.seq + 1, |(seq, _)| *seq);
        let resumed = since.is_some_and(|s| s <= snapshot.seq && s + 1 >= oldest);
        let from = since.filter(|_| resumed).unwrap_or(u64::MAX);
        let backlog = self.kept.iter().filter(|(seq, _)| *seq > from).map(|(seq, text)| MirrorItem::Frame { seq: *seq, text: text.clone() }).collect();
        Subscription { snapshot, resumed, backlog, follow }
    }
}
