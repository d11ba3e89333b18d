use std::fs::{Permissions, create_dir, set_permissions, write};

use super::*;

#[test]
fn a_bare_name_is_found_on_the_calls_own_path() {
    let temp = tempfile::tempdir().unwrap();
    let dir = |name: &str| temp.path().join(name);
    for name in ["plain", "bin"] {
        create_dir(dir(name)).unwrap();
    }
    write(dir("plain/tool"), "").unwrap();
    write(dir("bin/tool"), "").unwrap();
    set_permissions(dir("bin/tool"), Permissions::from_mode(0o755)).unwrap();
    let path = |dirs: &[&str]| {
        let dirs: Vec<String> = dirs
            .iter()
            .map(|name| dir(name).display().to_string())
            .collect();
        vec![("PATH".to_owned(), format!("relative:{}", dirs.join(":")))]
    };
    let cwd = Path::new("/w");
    assert_eq!(
        find("tool", &path(&["gone", "plain", "bin"]), cwd),
        Ok(dir("bin/tool"))
    );
    assert_eq!(
        find("tool", &path(&["plain"]), cwd),
        Err(ProgramError::NotExecutable {
            name: "tool".to_owned()
        })
    );
    assert_eq!(
        find("tool", &path(&["gone"]), cwd),
        Err(ProgramError::NotFound {
            name: "tool".to_owned()
        })
    );
    assert_eq!(find("./tool", &[], cwd), Ok(PathBuf::from("/w/./tool")));
    assert_eq!(find("/x/tool", &[], cwd), Ok(PathBuf::from("/x/tool")));
}
