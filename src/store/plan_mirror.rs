//! Plans as Markdown under `plans/` of the data folder, for people. Best effort: the log is the authority, an edited or deleted file
//! changes nothing, and only the gateway writes here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::files;
use crate::engine::event::EventKind;
use crate::engine::plan::PlanVersion;
use crate::engine::plan_file;

/// Writes the files an event of this conversation brings into `folder`. `newest`: the newest version before it.
///
/// # Errors
/// What the system says: warn and go on.
pub fn write(folder: &Path, id: &str, kind: &EventKind, newest: Option<&PlanVersion>) -> io::Result<()> {
    for (name, text) in plan_file::files(kind, newest) {
        let Some(place) = plan_file::place(id, &name) else { continue };
        let path: PathBuf = folder.join(place);
        if let Some(own) = path.parent() { fs::create_dir_all(own)? }
        files::write_whole(&path, text.as_bytes())?;
    }
    Ok(())
}

/// Deletes what was written for this conversation.
///
/// # Errors
/// What the system says.
pub fn remove(folder: &Path, id: &str) -> io::Result<()> {
    let Some(own) = plan_file::place(id, plan_file::DRAFT).and_then(|place| folder.join(place).parent().map(Path::to_path_buf)) else { return Ok(()) };
    match fs::remove_dir_all(own) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_written_and_wiped_and_an_odd_id_writes_nowhere() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let plan = PlanVersion { version: 3, title: "Shop".into(), ..PlanVersion::default() };
        write(dir.path(), "c1", &EventKind::Presented(plan.clone()), None)?;
        assert!(fs::read_to_string(dir.path().join("c1/v3.md"))?.starts_with("# Shop\n") && dir.path().join("c1/PLAN.md").exists());
        write(dir.path(), "../c2", &EventKind::Presented(plan), None)?;
        assert!(!dir.path().join("../c2").exists());
        remove(dir.path(), "c1")?;
        remove(dir.path(), "c1")?;
        assert!(!dir.path().join("c1").exists() && dir.path().exists());
        Ok(())
    }
}
