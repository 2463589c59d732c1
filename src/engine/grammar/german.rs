//! The German sentences: what tightens and asks, a yes or no to a tool, and the words that deny, wait, ask or doubt.
//!
//! Read by `grammar` alone. Nothing here approves a plan or leaves plan mode: who asks for that is sent to the chat or the screen.

use super::{Class, FILLERS, Loose, Meaning, Row, Scored, is_plainly_said, lookup, unloop, words_of};

const ENTER: &[&str] = &[
    "planmodus an", "planungsmodus an", "planmodus ein", "planungsmodus ein", "planmodus einschalten", "planungsmodus einschalten", "planmodus anschalten", "planmodus aktivieren", "planmodus starten", "schalte den planmodus ein", "schalt den planmodus ein",
    "schalte den planmodus an", "schalt den planmodus an", "geh in den planmodus", "gehe in den planmodus", "geh in den planungsmodus", "gehe in den planungsmodus", "wechsle in den planmodus", "wechsel in den planmodus", "wechsle in den planungsmodus",
    "zurück in den planmodus", "geh zurück in den planmodus", "starte den planmodus", "starte den planungsmodus", "start den planmodus", "starte planmodus", "aktiviere den planmodus", "lass uns erst planen", "lass uns zuerst planen", "erst planen",
    // what recognisers write
    "planmodusan", "plan modusan", "planmodus sahn", "planungssmodus an", "planmodus 1", "planmodus und", "plan muss an", "startet den planmodus", "starten den planmodus", "geht in den planmodus", "play in den planmodus", "geh in dem planmodus", "geh in denn planmodus",
];
const STATUS: &[&str] = &[
    "in welchem modus bist du", "in welchem modus sind wir", "in welchem modus bin ich", "welcher modus ist an", "welcher modus ist das", "welcher modus", "bist du im planmodus", "sind wir im planmodus", "bin ich im planmodus", "ist der planmodus an",
    "ist der planmodus aus", "in welchen modus bist du", "in welchem modus bis du",
];
const READ: &[&str] = &[
    "lies mir den plan vor", "lies den plan vor", "lies den plan", "lies mir den plan", "lies mir den plan noch einmal vor", "lies mir den plan noch mal vor", "lies mir den plan nochmal vor", "lese mir den plan vor", "lese den plan vor", "sag mir den plan",
    "wie lautet der plan", "was ist der plan", "lies meinen plan vor",
];
const KEEP: &[&str] = &["plane weiter", "weiter planen", "weiterplanen", "plan weiter"];
const STOP: &[&str] = &[
    "stopp", "stop", "halt", "halt stopp", "halt stop", "halt an", "sei still", "sei ruhig", "ruhe", "ruhe jetzt", "still", "hör auf", "hör auf zu reden", "hör auf zu sprechen", "aufhören", "genug", "das reicht", "es reicht", "schweig",
];
const CANCEL: &[&str] = &["abbrechen", "abbruch", "brich das ab", "brich ab", "brich es ab"];
const HELP: &[&str] = &["was kann ich sagen", "was kann ich hier sagen", "was kann ich jetzt sagen", "hilfe", "hilf mir", "welche befehle gibt es", "was sind die befehle"];
const REPEAT: &[&str] = &[
    "sag das noch einmal", "sag das noch mal", "sag das nochmal", "noch einmal", "noch mal", "nochmal", "wiederhole das", "wiederhol das", "wiederholen", "wie bitte", "was hast du gesagt", "kannst du das wiederholen",
];
/// Consent to a tool. Nothing else consents by text, and each has a score on the sound besides. "Ja, mach es" is none: a synthetic voice's
/// "ja, warte" was written so, and scored so.
const CONSENT: &[&str] = &["ja mach das", "ja mach weiter", "ja bitte mach das"];
const DENY: &[&str] = &[
    "nein", "nee", "nö", "nein nein", "nein nein nein", "nein danke", "nein nicht", "nein bitte nicht", "nicht", "bitte nicht", "lieber nicht", "besser nicht", "nein lieber nicht", "noch nicht", "nein noch nicht", "jetzt nicht", "nicht jetzt", "nein jetzt nicht",
    "heute nicht", "diesmal nicht", "so nicht", "nein so nicht", "auf keinen fall", "nein auf keinen fall", "auf gar keinen fall", "keinesfalls", "niemals", "nie", "lass das", "lass es", "lass das sein", "lass es sein", "lass mal", "nein lass das", "nein lass es",
    "nein lass mal", "mach das nicht", "mach es nicht", "mach das bitte nicht", "bitte mach das nicht", "nein mach das nicht", "nein mach es nicht", "nicht machen", "tu das nicht", "tu es nicht", "nein tu das nicht", "vergiss es", "nein vergiss es", "nein stopp",
    "nein stop", "nein halt", "nein warte", "ich habe nein gesagt", "ich sagte nein", "natürlich nicht", "bestimmt nicht", "ganz sicher nicht", "ablehnen", "abgelehnt", "ich möchte das nicht", "ich will das nicht", "das will ich nicht", "ich habe es mir anders überlegt",
    "ja mach das nicht", "ja mach es nicht", "ja aber nicht jetzt", "ja aber mach das nicht", "bleib im planmodus", "bleib im planungsmodus", "lass den planmodus an", "planmodus bleibt an",
];
const HOLD: &[&str] = &[
    "warte", "warten", "warte mal", "warte kurz", "warte noch", "warte bitte", "bitte warte", "bitte warten", "wart mal", "warte einen moment", "moment", "moment mal", "moment bitte", "einen moment", "einen moment bitte", "ein moment", "ein moment bitte", "kleinen moment",
    "augenblick", "augenblick bitte", "einen augenblick", "einen augenblick bitte", "sekunde", "eine sekunde", "eine minute", "lass mich nachdenken", "lass mich überlegen", "lass mich kurz überlegen", "lass mich kurz nachdenken", "ich überlege noch",
];
const BARE: &[&str] = &[
    "ja", "ja ja", "jep", "jo", "jawohl", "ok", "okay", "gut", "klar", "na klar", "genau", "ja genau", "richtig", "stimmt", "sicher", "natürlich", "gern", "gerne", "bitte", "ja bitte", "ja gern", "ja gerne", "ja klar", "ja gut", "ja ok", "ja okay", "ja sicher",
    "ja natürlich", "in ordnung", "einverstanden", "ja einverstanden", "alles klar", "passt", "ja passt", "mach das", "mach es", "ja mach es", "mach weiter", "mach", "mach schon", "ja mach", "bitte mach das", "los", "ja los", "weiter", "nur zu", "ja nur zu", "doch", "ja doch", "meinetwegen",
    "von mir aus", "super",
];
const SCREEN_ONLY: &[&str] = &[
    "planmodus aus", "planungsmodus aus", "planmodus ausschalten", "planungsmodus ausschalten", "planmodus beenden", "planungsmodus beenden", "beende den planmodus", "beende den planungsmodus", "verlasse den planmodus", "verlass den planmodus",
    "verlasse den planungsmodus", "planmodus verlassen", "schalte den planmodus aus", "schalt den planmodus aus", "raus aus dem planmodus", "genehmige den plan", "genehmige plan #", "genehmige plan eins", "genehmige plan zwei", "genehmige plan drei", "plan genehmigen",
    "plan # genehmigen", "bestätige den plan", "bestätige plan #", "bestätige plan eins", "bestätige plan zwei", "bestätige plan drei", "plan # bestätigen", "den plan genehmigen", "den plan bestätigen", "erlaube alles", "alles erlauben", "immer erlauben", "ja immer", "ja zu allem",
    "frag nicht mehr", "nicht mehr fragen",
];

pub(super) const ROWS: &[Row] = &[
    (ENTER, |_| Meaning::Enter), (STATUS, |_| Meaning::Status), (READ, |_| Meaning::Read(None)), (KEEP, |_| Meaning::KeepPlanning), (STOP, |_| Meaning::Stop), (CANCEL, |_| Meaning::CancelTurn), (HELP, |_| Meaning::Help),
    (REPEAT, |_| Meaning::Repeat), (CONSENT, |_| Meaning::Consent), (DENY, |_| Meaning::Deny), (HOLD, |_| Meaning::Hold), (BARE, |_| Meaning::Bare), (SCREEN_ONLY, |_| Meaning::ScreenOnly),
];

/// Words that may stand around a harmless sentence without changing it, beside the English ones.
const AROUND: &[&str] = &["bitte", "jetzt", "also", "äh", "ähm", "gut", "und", "mal", "dann", "na", "los", "nun", "schnell"];

/// What a whole utterance means in German. `None`: none of these sentences.
pub(super) fn meaning_of(text: &str) -> Option<Meaning> {
    let words = joined(words_of(text));
    if let Some(found) = lookup(ROWS, &words) {
        let strict = matches!(found.class(), Class::Loosening | Class::Consent);
        return (!strict || is_plainly_said(text, &words)).then_some(found);
    }
    let around = |w: &String| AROUND.contains(&w.as_str()) || FILLERS.contains(&w.as_str());
    let start = words.iter().position(|w| !around(w))?;
    let end = words.iter().rposition(|w| !around(w))? + 1;
    let found = lookup(ROWS, &unloop(words[start..end].to_vec()))?;
    matches!(found.class(), Class::Harmless | Class::Denial).then_some(found)
}

/// "Plan Modus" is one word, however it is written.
fn joined(words: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        match all.last_mut() {
            Some(last) if word == "modus" && (last == "plan" || last == "planungs") => last.push_str(&word),
            _ => all.push(word),
        }
    }
    all
}

/// What denies, waits and asks inside a longer answer. The English words count too: a person may well say "no" and "stop".
pub(super) const LOOSE: Loose = Loose {
    denying: &[
        "nein", "nee", "nö", "nicht", "nichts", "nie", "niemals", "kein", "keine", "keinen", "keinesfalls", "stopp", "stop", "halt", "abbrechen", "abbruch", "ablehnen", "vergiss", "no", "nope", "not", "dont", "never", "cancel", "negative", "refuse", "reject", "deny", "wont", "abort",
    ],
    denying_pairs: &[("lass", "das"), ("lass", "es"), ("lass", "mal"), ("lass", "sein"), ("hör", "auf"), ("hören", "auf")],
    waiting: &["warte", "warten", "wart", "moment", "augenblick", "sekunde", "wait"],
    waiting_pairs: &[("mich", "nachdenken"), ("mich", "überlegen"), ("kurz", "nachdenken"), ("kurz", "überlegen"), ("hold", "on"), ("hang", "on")],
    set_phrases: &[
        "kein problem", "keine probleme", "keine ahnung", "keine sorge", "kein zweifel", "keine einwände", "weiß nicht", "weiss nicht", "weiß ich nicht", "weiss ich nicht", "nicht verstanden", "nicht gehört", "nicht sicher", "warum nicht", "macht nichts", "nicht schlecht",
        "nicht warten", "nicht nötig zu warten",
    ],
    asks: &["was", "warum", "wieso", "weshalb", "wie", "wer", "wem", "wen", "wann", "wo", "wohin", "woher", "welche", "welcher", "welches", "welchen", "welchem", "worum", "wozu"],
    may_ask: &["ist", "sind", "bist", "bin", "war", "kann", "kannst", "könnte", "könntest", "darf", "soll", "sollte", "sollen", "wird", "wirst", "würdest", "willst", "hast", "hat", "habe", "machst", "macht"],
    statement: &["nicht", "nein", "kein", "keine", "keinen"],
    modes: &["modus", "planmodus", "planungsmodus", "mode"],
    outright: &["nein", "nee", "nö", "stopp", "stop", "halt", "no"],
};

/// Words that void a consent, beside the English ones.
pub(super) const VETO: &[&str] = &[
    "nein", "nee", "nö", "nicht", "nichts", "nie", "niemals", "kein", "keine", "keinen", "keinesfalls", "stopp", "halt", "warte", "warten", "moment", "augenblick", "sekunde", "abbrechen", "vergiss", "lass", "wenn", "falls", "ob", "bis", "aber", "sondern", "sollte", "sollten", "soll", "würde",
    "sonst", "später", "bevor", "nachdem", "warum", "wieso", "was", "wie", "wer", "er", "sie", "ich", "wir", "man", "sagt", "sagte", "gesagt", "selbst", "selber", "lieber", "besser", "eigentlich", "außer", "ohne",
];

const SCORED: &[(&str, Meaning)] = &[
    ("Planmodus an", Meaning::Enter), ("Planungsmodus an", Meaning::Enter), ("Geh in den Planmodus", Meaning::Enter), ("Starte den Planmodus", Meaning::Enter), ("In welchem Modus bist du", Meaning::Status), ("Lies mir den Plan vor", Meaning::Read(None)),
    ("Stopp", Meaning::Stop), ("Halt", Meaning::Stop), ("Sei still", Meaning::Stop), ("Hör auf", Meaning::Stop), ("Abbrechen", Meaning::CancelTurn),
    ("Ja, mach das", Meaning::Consent), ("Ja, mach weiter", Meaning::Consent), ("Ja, bitte mach das", Meaning::Consent),
    ("Ja", Meaning::Bare), ("Okay", Meaning::Bare), ("Gut", Meaning::Bare), ("Klar", Meaning::Bare), ("Genau", Meaning::Bare), ("Ja, bitte", Meaning::Bare), ("Ja, gerne", Meaning::Bare), ("In Ordnung", Meaning::Bare),
    ("Nein", Meaning::Deny), ("Nee", Meaning::Deny), ("Nö", Meaning::Deny), ("Nein, danke", Meaning::Deny), ("Nein, nein", Meaning::Deny), ("Nicht", Meaning::Deny), ("Bitte nicht", Meaning::Deny), ("Lieber nicht", Meaning::Deny), ("Noch nicht", Meaning::Deny), ("Jetzt nicht", Meaning::Deny),
    ("Auf keinen Fall", Meaning::Deny), ("Lass das", Meaning::Deny), ("Lass es", Meaning::Deny), ("Mach das nicht", Meaning::Deny), ("Mach es nicht", Meaning::Deny), ("Nein, mach das nicht", Meaning::Deny), ("Nein, lass das", Meaning::Deny), ("Tu das nicht", Meaning::Deny),
    ("Vergiss es", Meaning::Deny), ("Nein, warte", Meaning::Deny), ("Nein, stopp", Meaning::Deny), ("Ja, mach das nicht", Meaning::Deny), ("Ja, mach es nicht", Meaning::Deny), ("Ja, aber nicht jetzt", Meaning::Deny),
    ("Warte", Meaning::Hold), ("Warte mal", Meaning::Hold), ("Moment", Meaning::Hold), ("Moment mal", Meaning::Hold), ("Einen Moment", Meaning::Hold), ("Einen Moment, bitte", Meaning::Hold),
];

/// Sentences that sound like consent or like an entry and mean something else.
const RIVALS: &[&str] = &[
    "Ja, aber", "Ja, aber mach das nicht", "Ja, mach weiter nicht", "Ja, mach das später", "Ja, mach das, nein", "Ja, mach das, warte", "Ja, mach das nicht so", "Ja, mach das Licht an", "Ja, mach das Licht aus", "Ja, mach was", "Ja, mach", "Ja, das", "Ja, weiter",
    "Ja, was macht das", "Was macht das", "Wer macht das", "Ja, wer macht das", "Ich mach das", "Ja, ich mach das", "Ja, ich mach das selbst", "Er macht das", "Ja, er macht das", "Soll ich das machen", "Nein, mach das", "Nein, mach weiter", "Na, mach das nicht", "Mach das", "Mach es",
    "Mach weiter", "Ja, mach es", "Ja, lass das", "Ja, lasst das", "Ja, warte", "Ja, warte mal", "Ja, halt", "Ja, stopp", "Ja, Moment", "Ja, nein", "Jahr", "Da", "Danke", "Ein", "Mein", "Planmodus aus", "Planungsmodus aus", "Planmodus", "Geh nicht in den Planmodus", "Starte den Planmodus nicht", "Verlasse den Planmodus",
];

/// How recognisers write single sentences besides.
const MISSPELT: &[(&str, &[&str])] = &[
    ("Ja, mach das", &["Ja, macht das", "Ja, mach dass"]), ("Ja, mach das nicht", &["Ja, macht das nicht"]), ("Mach das nicht", &["Macht das nicht"]), ("Ja, mach weiter", &["Ja, mache weiter"]), ("Ja, bitte mach das", &["Ja, bitte macht das", "Ja bitte, mach das"]),
    ("Stopp", &["Stop"]), ("Nein, danke", &["Nein, Danke"]), ("Planmodus an", &["Plan Modusan"]), ("Starte den Planmodus", &["Startet den Planmodus"]), ("Lass das", &["Lasst das"]), ("Nein, stopp", &["Nein, stop"]),
];

/// The sentences whose fit to the sound is scored. Ids are indexes.
pub(super) fn phrase_table() -> Vec<Scored> {
    let rivals = RIVALS.iter().map(|r| (*r, Meaning::Rival));
    let rows = SCORED.iter().map(|(s, m)| (*s, m.clone())).chain(rivals);
    rows.enumerate().map(|(id, (sentence, meaning))| Scored {
        phrase: super::Phrase { id: id as u16, spellings: spellings(sentence), question: matches!(meaning, Meaning::Status) || sentence.contains("Was ") || sentence.contains("Wer ") }, meaning,
    }).collect()
}

/// With and without its comma, the first letter large or small, "Planmodus" in one word or two.
fn spellings(sentence: &str) -> Vec<String> {
    let mut all = vec![sentence.to_owned()];
    all.extend(MISSPELT.iter().filter(|(right, _)| *right == sentence).flat_map(|(_, wrong)| wrong.iter().map(|w| (*w).to_owned())));
    for (one, other) in [("Planmodus", "Plan Modus"), ("Planungsmodus", "Planungs Modus"), (",", "")] {
        all.extend(all.iter().filter(|s| s.contains(one)).map(|s| s.replace(one, other)).collect::<Vec<_>>());
    }
    all.extend(all.iter().map(|s| s.chars().take(1).flat_map(char::to_lowercase).chain(s.chars().skip(1)).collect::<String>()).collect::<Vec<_>>());
    all.sort();
    all.dedup();
    // What a sentence is called by stays in front.
    if let Some(at) = all.iter().position(|s| s == sentence) { all.swap(0, at) }
    all
}
