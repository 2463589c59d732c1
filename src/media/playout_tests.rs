//! Tests of playback accounting.

use super::PlayoutEvent::{Drained, Idle, Started};
use super::*;
use proptest::prelude::*;

fn pull(p: &mut Playout, n: usize) -> Vec<i16> {
    let mut out = Vec::new();
    p.pull(n, &mut out);
    assert_eq!(out.len(), n);
    out
}

fn events(p: &mut Playout) -> Vec<PlayoutEvent> {
    std::iter::from_fn(|| p.poll()).collect()
}

#[test]
fn a_speech_of_two_segments_starts_plays_and_drains() {
    let mut p = Playout::new(16_000);
    assert_eq!(p.append(1, &[5; 320]), 0);
    assert!(events(&mut p).is_empty());
    assert_eq!(pull(&mut p, 320), [5; 320]);
    assert_eq!(events(&mut p), [Started { speech: 1 }]);
    // Between segments it waits in silence and stays open.
    assert_eq!(pull(&mut p, 320), [0; 320]);
    assert_eq!(p.append(1, &[6; 160]), 0);
    p.finish(1);
    assert_eq!(p.queued_ms(), 10);
    assert_eq!(pull(&mut p, 320)[159..161], [6, 0]);
    assert_eq!(events(&mut p), [Drained { speech: 1, heard_ms: 30 }, Idle]);
    assert_eq!((p.heard_ms(1), p.heard_ms(9), p.is_silent()), (Some(30), None, true));
}

#[test]
fn speeches_keep_their_order_without_a_gap() {
    let mut p = Playout::new(8_000);
    p.append(1, &[1; 10]);
    p.append(2, &[2; 10]);
    p.append(1, &[1; 5]);
    p.finish(2);
    p.finish(1);
    let mut expected = vec![1i16; 15];
    expected.extend([2; 10]);
    expected.extend([0; 5]);
    assert_eq!(pull(&mut p, 30), expected);
    assert_eq!(events(&mut p), [Started { speech: 1 }, Drained { speech: 1, heard_ms: 1 }, Started { speech: 2 }, Drained { speech: 2, heard_ms: 1 }, Idle]);
}

#[test]
fn a_speech_without_sound_drains_in_its_turn() {
    let mut p = Playout::new(16_000);
    p.append(1, &[1; 16]);
    p.finish(2);
    assert!(events(&mut p).is_empty());
    p.finish(1);
    pull(&mut p, 16);
    assert_eq!(events(&mut p), [Started { speech: 1 }, Drained { speech: 1, heard_ms: 1 }, Drained { speech: 2, heard_ms: 0 }, Idle]);
    p.finish(3);
    assert_eq!(events(&mut p), [Drained { speech: 3, heard_ms: 0 }, Idle]);
}

#[test]
fn a_cut_tells_what_was_heard_fades_and_stays_cut() {
    let mut p = Playout::new(16_000);
    p.append(1, &[10_000; 16_000]);
    p.append(2, &[1; 160]);
    pull(&mut p, 6_400);
    let cuts = p.cut(None);
    assert_eq!(cuts, [Cut { speech: 1, heard_ms: 400, total_ms: 1000 }, Cut { speech: 2, heard_ms: 0, total_ms: 10 }]);
    let after = pull(&mut p, 200);
    assert!(after[0] > 9_000 && after[79] > 0 && after[80..].iter().all(|s| *s == 0));
    assert!(after.windows(2).all(|w| w[0] - w[1] < 200 && w[0] >= w[1]), "no click");
    assert_eq!(events(&mut p), [Started { speech: 1 }, Idle]);
    assert_eq!(p.append(1, &[3; 50]), 50);
    p.finish(1);
    assert_eq!((pull(&mut p, 50), p.queued_ms(), p.heard_ms(1)), (vec![0; 50], 0, Some(400)));
    assert!(events(&mut p).is_empty());
    assert!(p.cut(Some(77)).is_empty());
}

#[test]
fn cutting_one_lets_the_next_move_up() {
    let mut p = Playout::new(16_000);
    p.append(1, &[100; 16_000]);
    p.append(2, &[7; 320]);
    p.finish(2);
    pull(&mut p, 16);
    assert_eq!(p.cut(Some(1)), [Cut { speech: 1, heard_ms: 1, total_ms: 1000 }]);
    assert_eq!(pull(&mut p, 320)[319], 7);
    assert_eq!(events(&mut p)[1..], [Started { speech: 2 }, Drained { speech: 2, heard_ms: 20 }, Idle]);
}

#[test]
fn ducking_is_quick_keeps_its_place_and_leaves_earcons_alone() {
    let mut p = Playout::new(16_000);
    p.append(1, &(0..3_200).map(|n| if n < 1_600 { 10_000 } else { 5_000 }).collect::<Vec<i16>>());
    pull(&mut p, 320);
    p.duck();
    p.duck();
    let x = pull(&mut p, 640);
    assert!(x[0] > 9_900 && x.windows(2).all(|w| w[0].abs_diff(w[1]) < 100), "no click");
    assert!(x[(16 * 23)..].iter().all(|s| *s <= 1_000), "20 dB down within 23 ms");
    assert!(x[400..].iter().all(|s| *s == 0));
    assert_eq!(p.heard_ms(1), Some(20), "the fading end does not count");
    p.earcon(&[3_000; 100]);
    assert_eq!(pull(&mut p, 101), [vec![3_000; 100], vec![0]].concat());
    p.resume();
    let y = pull(&mut p, 2_880);
    assert!(y[0] < 100 && y[320] == 10_000 && y[1_279] == 10_000 && y[1_280] == 5_000 && y[2_879] == 5_000, "nothing is lost");
    assert_eq!(p.heard_ms(1), Some(200));
    p.earcon(&[30_000; 10]);
    p.earcon(&[30_000; 10]);
    assert_eq!(pull(&mut p, 1), [i16::MAX]);
}

#[test]
fn a_cut_of_what_is_ducked_sounds_no_more_and_the_next_is_not_ducked() {
    let mut p = Playout::new(16_000);
    p.append(1, &[10_000; 3_200]);
    pull(&mut p, 320);
    p.duck();
    pull(&mut p, 640);
    assert_eq!(p.cut(Some(1)), [Cut { speech: 1, heard_ms: 20, total_ms: 200 }]);
    assert_eq!(pull(&mut p, 100), vec![0; 100]);
    p.append(2, &[7_000; 640]);
    assert!(!p.is_ducked());
    assert_eq!(pull(&mut p, 640)[639], 7_000);
    // Held before its first sample: it begins when it may.
    p.append(3, &[500; 320]);
    p.finish(2);
    p.duck();
    assert_eq!(pull(&mut p, 400), vec![0; 400]);
    p.resume();
    assert_eq!(pull(&mut p, 320)[319], 500);
}

#[test]
fn the_queue_is_bounded() {
    let mut p = Playout::new(8_000);
    assert_eq!(p.append(1, &vec![1; 961_000]), 1_000);
    assert_eq!(p.append(2, &[1; 10]), 10);
    assert_eq!(p.queued_ms(), MAX_QUEUED_MS);
    for id in 3..1000 {
        p.append(id, &[]);
    }
    assert!(p.speeches.len() <= MAX_SPEECHES);
}

proptest! {
    /// Whatever is done to it: every appended sample is heard, waiting, or was cut.
    #[test]
    fn the_account_balances(steps in prop::collection::vec((0u8..7, 0u64..6, 0usize..400), 1..60)) {
        let mut p = Playout::new(8_000);
        let (mut taken, mut dropped, mut started) = (0u64, 0u64, 0u64);
        for (what, id, n) in steps {
            match what {
                0 | 1 => taken += (n - p.append(id, &vec![1; n])) as u64,
                2 => p.finish(id),
                3 => drop(pull(&mut p, n)),
                4 => p.duck(),
                5 => p.resume(),
                _ => {
                    let before = p.queued;
                    p.cut((n % 2 == 0).then_some(id));
                    dropped += before - p.queued;
                }
            }
            started += events(&mut p).iter().filter(|e| matches!(e, Started { .. })).count() as u64;
        }
        let heard: u64 = p.speeches.iter().map(|s| s.heard).chain(p.past.iter().map(|s| s.1)).sum();
        let waiting: u64 = p.speeches.iter().map(|s| s.waiting.len() as u64).sum();
        prop_assert_eq!(waiting, p.queued);
        prop_assert_eq!(taken, heard + waiting + dropped);
        prop_assert!(started <= 6);
    }
}
