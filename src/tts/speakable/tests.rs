//! The table: what is written, what is said.

use super::speakable;
use proptest::prelude::*;

const TABLE: &[(&str, &str)] = &[
    // Plain text stays.
    ("Plan mode is on.", "Plan mode is on."),
    ("Don't worry, it's 3.5 or 1,250!", "Don't worry, it's 3.5 or 1,250!"),
    ("\u{201c}Yes,\u{201d} she said \u{2014} and it\u{2019}s done\u{2026}", "Yes, she said, and it's done\u{2026}"),
    ("At 7:30 p.m. on 2026-11-30, e.g. today.", "At 7 30 p.m. on November 30, 2026, for example today."),
    ("", ""),
    ("  \n\n ", ""),
    ("two\nlines", "two lines"),
    // Emphasis.
    ("**Bold** and *slanted* and ***both***.", "Bold and slanted and both."),
    ("__Bold__ and _slanted_ and ~~gone~~.", "Bold and slanted and gone."),
    ("An **open end", "An open end"),
    ("2 * 3 = 6", "2 times 3 equals 6"),
    ("3*4 and 3\u{d7}4", "3 times 4 and 3 times 4"),
    ("\\*not slanted\\*", "not slanted"),
    // Code.
    ("Run `cargo test` now.", "Run cargo test now."),
    ("Call `make_it()` or `std::fs::read`.", "Call make it or std fs read."),
    ("Look:\n```rust\nfn main() {}\n```\nThat is all.", "Look: Here is a piece of code, which is on the screen. That is all."),
    ("```\nan open fence\n# not a heading", "Here is a piece of code, which is on the screen."),
    ("```a```\nafter", "Here is a piece of code, which is on the screen. after"),
    ("~~~\nx\n~~~\n```\ny\n```", "Here is a piece of code, which is on the screen."),
    // Links and images.
    ("See [the manual](https://example.com/a/b?c=d).", "See the manual."),
    ("See [the **bold** one][ref] there.", "See the bold one there."),
    ("![a red house](house.png)", "an image: a red house"),
    ("![](house.png) here", "an image here"),
    ("It is at https://www.example.com:8080/x?y=1#z.", "It is at a link to example dot com."),
    ("<https://my-site.org/page> works", "a link to my site dot org works"),
    ("Write to jane.doe@example.com, please.", "Write to jane dot doe at example dot com, please."),
    ("A fact.[^1]", "A fact."),
    ("An array [1] stays [open", "An array 1 stays open"),
    // Blocks.
    ("# A title", "A title."),
    ("## Closed title ##\ntext", "Closed title. text"),
    ("#5 is not a title", "number 5 is not a title"),
    ("- milk\n- eggs,\n* bread!", "milk. eggs. bread!"),
    ("1. first\n2) second\n10. tenth", "1: first. 2: second. 10: tenth."),
    ("- [ ] buy milk\n- [x] call home", "open: buy milk. done: call home."),
    ("> quoted\n> > twice", "quoted twice"),
    ("above\n---\nbelow\n***", "above below"),
    ("| Name | Size |\n|---|:-:|\n| notes | 3 kB |", "Name, Size. notes, 3 kilobytes."),
    ("<b>bold</b><br>next &amp; last <!-- no --> 1 < 2", "bold next and last 1 is less than 2"),
    // Emoji and signs.
    ("Done \u{2705} \u{1f389}!", "Done!"),
    ("\u{1f44d}", ""),
    ("\u{1f468}\u{200d}\u{1f469}\u{fe0f} family", "family"),
    ("a -> b \u{2192} c & d", "a to b to c and d"),
    ("x >= 3 and y != 4", "x is at least 3 and y is not 4"),
    ("--- *** ___", ""),
    // Paths and names.
    ("Saved to /home/jane/notes/shopping.txt.", "Saved to shopping dot text in notes."),
    ("Look into src/tts/mod.rs, ./run.sh and ~/plans", "Look into mod dot R S in tts, run dot S H and plans"),
    ("C:\\Users\\jane\\todo.md", "todo dot M D in jane"),
    ("todo.json and README.md", "todo dot jason and README dot M D"),
    ("the tool notes__add and plan_mode", "the tool notes add and plan mode"),
    ("and/or, yes/no, read/write/run", "and or or, yes or no, read or write or run"),
    // Numbers and units.
    ("It took 250ms, 3s and 1h.", "It took 250 milliseconds, 3 seconds and 1 hour."),
    ("50% of 16kHz at -20dB", "50 percent of 16 kilohertz at minus 20 decibels"),
    ("21\u{b0}C outside, ~5km away", "21 degrees Celsius outside, about 5 kilometers away"),
    ("3-5 items, pages 10\u{2013}12, 2GB", "3 to 5 items, pages 10 to 12, 2 gigabytes"),
    ("$9.99 and 5\u{20ac}", "9 dollars and 99 cents and 5 euros"),
    ("It has 16 GB, 1 min ago; give 2 us.", "It has 16 gigabytes, 1 minute ago; give 2 us."),
    ("Use --force or -v", "Use force or -v"),
    ("3.5 of 1,024", "3.5 of 1,024"),
    ("v1.2.3, v2 and 0.9.1.", "version 1 dot 2 dot 3, version 2 and 0 dot 9 dot 1."),
    ("v0.27 at 127.0.0.1:8710", "version 0 point 27 at 127 dot 0 dot 0 dot 1, port 8710"),
    ("At 12:30, 7:05 and 9:00.", "At 12 30, 7 oh 5 and 9 o'clock."),
    ("10:30-11:00, 8:15pm, 00:00:07", "10 30 to 11 o'clock, 8 15 P M, 0 o'clock and 7 seconds"),
    ("16:9 and 24/7 and 3/4", "16 to 9 and 24 7 and 3 over 4"),
    ("On 2026-11-30 and 2026-13-01.", "On November 30, 2026 and 2026-13-01."),
    ("$5.20, $1, \u{20ac}0.99 and \u{a3}1,000", "5 dollars and 20 cents, 1 dollar, 99 cents and 1,000 pounds"),
    ("$3.5 or $2.01", "3.5 dollars or 2 dollars and 1 cent"),
    ("Up 50%, 10-20%", "Up 50 percent, 10 to 20 percent"),
    ("See /etc/passwd.", "See passwd in etc."),
    ("In src/main.rs:42, not lib.rs:7", "In main dot R S in src, line 42, not lib dot R S, line 7"),
    ("https://example.com/a?b=c", "a link to example dot com"),
    ("Milk, i.e. two liters, vs. none", "Milk, that is two liters, versus none"),
    ("w/o I/O", "without I O"),
    ("commit 3f2a9c1b77d04e5a8c11 is in", "commit a long code is in"),
    ("id 123e4567-e89b-12d3-a456-426614174000", "id a long code"),
    ("5 km, 3 kg and 20 ms", "5 kilometers, 3 kilograms and 20 milliseconds"),
    ("C++ and UTF-8", "C plus plus and UTF-8"),
];

#[test]
fn the_table_holds() {
    assert!(TABLE.len() >= 60, "{}", TABLE.len());
    let wrong: Vec<String> = TABLE.iter().filter(|(text, said)| speakable(text) != *said)
        .map(|(text, said)| format!("{text:?}\n  gives    {:?}\n  expected {said:?}", speakable(text))).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), TABLE.len(), wrong.join("\n"));
}

#[test]
fn what_is_said_is_said_the_same_again() {
    for (_, said) in TABLE.iter().filter(|(_, said)| !said.contains(['\u{2026}', '$'])) {
        assert_eq!(speakable(said), *said);
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_no_mark_is_left(text in "[a-z0-9 *_`#\\[\\]()<>!~|\n/.:@\u{e9}\u{1f389}-]{0,80}") {
        let said = speakable(&text);
        prop_assert!(!said.contains(['`', '|', '<', '#', '\n', '\u{1f389}']), "{said:?}");
    }
}
