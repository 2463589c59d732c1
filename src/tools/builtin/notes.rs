//! Notes: one text file each, in one folder. A note that is deleted moves to `.trash` beside the others, so it can be had back.
//!
//! Files a person put there (`*.md`, `*.txt`) are notes too. No path is ever built from what an agent says: notes are found by
//! their words, and only plain files that stand in the folder itself are touched.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::BuiltinContext;
use crate::engine::tool::ToolOutcome;

/// Longest note, in characters.
const NOTE_CHARS: usize = 4_000;
/// Most notes in the folder.
const NOTES_MAX: usize = 1_000;
/// Titles given in one list.
const LISTED: usize = 100;
/// Longest title, in characters.
const TITLE_CHARS: usize = 80;
/// What is read of a file that a person put there, in bytes.
const FILE_BYTES: u64 = 64 * 1024;
const TRASH: &str = ".trash";

struct Note {
    path: PathBuf,
    text: String,
}

impl Note {
    /// The first line that says something, without heading marks.
    fn title(&self) -> String {
        let line = self.text.lines().map(|l| l.trim().trim_start_matches('#').trim()).find(|l| !l.is_empty()).unwrap_or("an empty note");
        let short: String = line.chars().take(TITLE_CHARS).collect();
        if short.len() < line.len() { format!("{}…", short.trim_end()) } else { short }
    }
}

/// `{count, titles}`: at most 100 titles, the oldest note first.
pub fn list(context: &BuiltinContext, _: &Value) -> ToolOutcome {
    let notes = match all(&context.notes_dir) { Ok(notes) => notes, Err(e) => return trouble(&e) };
    let titles: Vec<String> = notes.iter().take(LISTED).map(Note::title).collect();
    ToolOutcome::ok(json!({"success": true, "count": notes.len(), "titles": titles}))
}

/// The titles, the newest first; none when the folder cannot be read.
pub fn titles(context: &BuiltinContext) -> Vec<String> {
    all(&context.notes_dir).map_or_else(|_| Vec::new(), |notes| notes.iter().rev().map(Note::title).collect())
}

/// `{title, text}` of the note with these words.
pub fn read(context: &BuiltinContext, arguments: &Value) -> ToolOutcome {
    match one(context, arguments) {
        Ok(note) => ToolOutcome::ok(json!({"success": true, "title": note.title(), "text": note.text.trim()})),
        Err(outcome) => outcome,
    }
}

/// Writes a new note; `{title, count}`.
pub fn add(context: &BuiltinContext, arguments: &Value) -> ToolOutcome {
    let text = arguments["text"].as_str().unwrap_or_default().trim();
    if text.is_empty() {
        return ToolOutcome::failed("empty_note", "An empty note cannot be added.");
    }
    if text.chars().count() > NOTE_CHARS {
        return ToolOutcome::failed("note_too_long", format!("A note has at most {NOTE_CHARS} characters."));
    }
    let count = match all(&context.notes_dir) { Ok(notes) => notes.len(), Err(e) => return trouble(&e) };
    if count >= NOTES_MAX {
        return ToolOutcome::failed("too_many_notes", format!("There are {count} notes already; delete some first."));
    }
    match write(&context.notes_dir, text) {
        Ok(path) => ToolOutcome::ok(json!({"success": true, "title": Note { path, text: text.into() }.title(), "total": count + 1})),
        Err(e) => trouble(&e),
    }
}

/// Moves the note with these words to the trash; `{title}`.
pub fn delete(context: &BuiltinContext, arguments: &Value) -> ToolOutcome {
    let note = match one(context, arguments) { Ok(note) => note, Err(outcome) => return outcome };
    match discard(&context.notes_dir, &note.path) {
        Ok(()) => ToolOutcome::ok(json!({"success": true, "title": note.title(), "note": "It is in the trash folder of the notes."})),
        Err(e) => trouble(&e),
    }
}

/// All notes by file name; names begin with a time, so the oldest comes first. A folder that is not there holds none.
fn all(dir: &Path) -> io::Result<Vec<Note>> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let text_file = !name.starts_with('.') && [".md", ".txt"].iter().any(|x| name.ends_with(x));
        // `file_type` does not follow links: a link to somewhere else is no note.
        if text_file && entry.file_type()?.is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    paths.truncate(NOTES_MAX);
    paths.into_iter().map(|path| Ok(Note { text: head(&path)?, path })).collect()
}

fn head(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The one note meant by `title`: its very title, else all the words in its title, else all the words in its text.
fn one(context: &BuiltinContext, arguments: &Value) -> Result<Note, ToolOutcome> {
    let wanted = bare(arguments["title"].as_str().unwrap_or_default());
    let notes = all(&context.notes_dir).map_err(|e| trouble(&e))?;
    if wanted.is_empty() {
        return Err(ToolOutcome::failed("no_such_note", "Say a word or two of the note."));
    }
    let holds = |text: &str| { let words = bare(text); wanted.iter().all(|w| words.contains(w)) };
    let ways: [&dyn Fn(&Note) -> bool; 3] = [&|n| bare(&n.title()) == wanted, &|n| holds(&n.title()), &|n| holds(&n.text)];
    let Some(way) = ways.into_iter().find(|way| notes.iter().any(way)) else {
        return Err(ToolOutcome::failed("no_such_note", format!("There is no note about {} here.", wanted.join(" "))));
    };
    let mut found: Vec<Note> = notes.into_iter().filter(way).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        n => {
            let titles: Vec<String> = found.iter().take(5).map(Note::title).collect();
            let mut outcome = ToolOutcome::failed("which_note", format!("There are {n} notes about {}; say more words of the one you mean.", wanted.join(" ")));
            outcome.output["titles"] = json!(titles);
            Err(outcome)
        }
    }
}

fn bare(text: &str) -> Vec<String> {
    text.to_lowercase().replace(['\'', '’'], "").split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_string).collect()
}

/// Beside its place first, then renamed over: a note is there whole or not at all.
fn write(dir: &Path, text: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(dir)?;
    let name = ulid::Ulid::generate().to_string();
    let (draft, path) = (dir.join(format!(".{name}.tmp")), dir.join(format!("{name}.md")));
    let written = File::options().write(true).create_new(true).open(&draft)
        .and_then(|mut file| { file.write_all(text.as_bytes())?; file.write_all(b"\n")?; file.sync_all() })
        .and_then(|()| fs::rename(&draft, &path))
        .and_then(|()| File::open(dir)?.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.map(|()| path)
}

fn discard(dir: &Path, path: &Path) -> io::Result<()> {
    let trash = dir.join(TRASH);
    fs::create_dir_all(&trash)?;
    if fs::symlink_metadata(&trash)?.file_type().is_symlink() {
        return Err(io::Error::other("the trash folder is a link"));
    }
    let name = path.file_name().ok_or_else(|| io::Error::other("a note without a name"))?;
    let mut target = trash.join(name);
    if target.exists() {
        target = trash.join(format!("{}-{}", ulid::Ulid::generate(), name.to_string_lossy()));
    }
    fs::rename(path, target)?;
    File::open(dir)?.sync_all()
}

fn trouble(error: &io::Error) -> ToolOutcome {
    // Kind only: the message of an error may name paths, which are nothing to an agent.
    ToolOutcome::failed("notes_unavailable", format!("The notes folder did not work: {}.", error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, BuiltinContext) {
        let dir = tempfile::tempdir().expect("a folder");
        let context = BuiltinContext { notes_dir: dir.path().join("notes"), files_root: None };
        (dir, context)
    }

    fn say(context: &BuiltinContext, texts: &[&str]) {
        for text in texts {
            assert!(add(context, &json!({"text": text})).success, "{text}");
        }
    }

    #[test]
    fn a_note_is_added_listed_read_and_put_in_the_trash() {
        let (_dir, context) = folder();
        assert_eq!(list(&context, &json!({})).output, json!({"success": true, "count": 0, "titles": []}));
        say(&context, &["buy milk", "call Bob about the boat"]);
        assert_eq!(list(&context, &json!({})).output["count"], 2);
        assert_eq!(read(&context, &json!({"title": "boat"})).output["text"], "call Bob about the boat");
        assert_eq!(delete(&context, &json!({"title": "Milk!"})).output["title"], "buy milk");
        assert_eq!(list(&context, &json!({})).output["titles"], json!(["call Bob about the boat"]));
        let trash: Vec<_> = fs::read_dir(context.notes_dir.join(TRASH)).expect("a trash").collect();
        assert_eq!(trash.len(), 1);
    }

    #[test]
    fn words_that_fit_two_notes_touch_none() {
        let (_dir, context) = folder();
        say(&context, &["buy milk", "buy oat milk", "milk"]);
        assert_eq!(delete(&context, &json!({"title": "buy"})).error_code, "which_note");
        assert_eq!(delete(&context, &json!({"title": "milk"})).output["title"], "milk");
        assert_eq!(delete(&context, &json!({"title": "../milk.md"})).error_code, "no_such_note");
        assert_eq!(delete(&context, &json!({"title": " . "})).error_code, "no_such_note");
        assert_eq!(list(&context, &json!({})).output["count"], 2);
    }

    #[test]
    fn links_drafts_and_folders_are_no_notes() {
        let (dir, context) = folder();
        say(&context, &["one"]);
        fs::write(dir.path().join("secret.md"), "swordfish").expect("a file");
        std::os::unix::fs::symlink(dir.path().join("secret.md"), context.notes_dir.join("link.md")).expect("a link");
        fs::create_dir(context.notes_dir.join("folder.md")).expect("a folder");
        fs::write(context.notes_dir.join(".x.tmp"), "half").expect("a file");
        assert_eq!(list(&context, &json!({})).output["titles"], json!(["one"]));
        assert_eq!(read(&context, &json!({"title": "swordfish"})).error_code, "no_such_note");
    }

    #[test]
    fn bounds_hold() {
        let (_dir, context) = folder();
        assert_eq!(add(&context, &json!({"text": "  "})).error_code, "empty_note");
        assert_eq!(add(&context, &json!({"text": "x".repeat(NOTE_CHARS + 1)})).error_code, "note_too_long");
        fs::create_dir_all(&context.notes_dir).expect("a folder");
        (0..NOTES_MAX).for_each(|n| fs::write(context.notes_dir.join(format!("{n}.txt")), "x").expect("a file"));
        assert_eq!(add(&context, &json!({"text": "one more"})).error_code, "too_many_notes");
    }
}
