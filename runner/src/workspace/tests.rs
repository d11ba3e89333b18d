use super::*;

fn resolve(path: &Path, mode: Mode, homes: &[PathBuf]) -> Result<(PathBuf, Option<String>), Fault> {
    let path = directory(path, "workspace")?;
    let warning = judge(&path, mode, homes)?;
    Ok((path, warning))
}

fn refused(path: &Path, homes: &[PathBuf]) -> String {
    let fault = resolve(path, Mode::WorkspaceWrite, homes).expect_err("refused");
    assert_eq!(fault.code, 2);
    fault.to_string()
}

#[test]
fn a_plain_directory_is_taken_by_its_real_path() {
    let dir = tempfile::tempdir().expect("a directory");
    let real = fs::canonicalize(dir.path()).expect("real");
    let taken = resolve(dir.path(), Mode::WorkspaceWrite, &[]).expect("taken");
    assert_eq!(taken, (real, None));
}

#[test]
fn what_cannot_be_a_workspace_is_named_with_a_remedy() {
    let dir = tempfile::tempdir().expect("a directory");
    let (file, link, gone) = (
        dir.path().join("f"),
        dir.path().join("l"),
        dir.path().join("no\nsuch"),
    );
    fs::write(&file, "").expect("written");
    std::os::unix::fs::symlink(dir.path(), &link).expect("linked");
    assert!(refused(&file, &[]).contains("is not a directory"));
    assert!(refused(&link, &[]).contains("is a symlink; name where it leads: /"));
    assert!(refused(&gone, &[]).contains("does not exist; create it"));
    assert!(!refused(&gone, &[]).contains('\n'));
    assert!(refused(Path::new("/"), &[]).contains("root of the file system"));
}

#[test]
fn the_home_and_what_contains_it_are_refused_for_writing_and_warned_of_for_reading() {
    let dir = tempfile::tempdir().expect("a directory");
    let home = dir.path().join("home");
    fs::create_dir(&home).expect("made");
    let homes = [home.clone()];
    assert!(refused(&home, &homes).contains("is the home directory"));
    assert!(refused(dir.path(), &homes).contains("contains the home directory"));
    let read = resolve(&home, Mode::ReadOnly, &homes).expect("taken");
    assert!(read.1.expect("a warning").contains("is the home directory"));
    fs::create_dir(home.join("project")).expect("made");
    assert!(resolve(&home.join("project"), Mode::WorkspaceWrite, &homes).is_ok());
}
