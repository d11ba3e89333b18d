use super::*;

#[test]
fn an_account_is_found_by_uid_and_damage_is_skipped() {
    let passwd = "broken\n:x:7:7::/none:\nroot:x:0:0:root:/root:/bin/sh\nalice:x:501:20:A,,:/home/alice:/bin/zsh\n";
    let alice = Account {
        name: "alice".to_owned(),
        gid: 20,
        home: "/home/alice".into(),
    };
    assert_eq!(parse_account(passwd, 501), Some(alice));
    assert_eq!(parse_account(passwd, 7), None);
    assert_eq!(parse_account(passwd, 8), None);
}

#[test]
fn the_shell_lies_outside_every_root() {
    let usual = shell(&[]);
    assert!(usual.is_absolute());
    assert_eq!(shell(&[Path::new("/")]), Path::new("/bin/sh"));
}

#[test]
fn the_git_identity_is_read_without_git_and_the_home_has_the_last_word() {
    let temp = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = temp.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        ".config/git/config",
        "[user]\n\tname = Xdg\n\temail = x@y\n",
    );
    write(".gitconfig", "[user]\n\tname = Home\n");
    let operator = Operator {
        home: Some(temp.path().to_path_buf()),
        passwd_home: None,
        user: "a".to_owned(),
        variables: BTreeMap::new(),
    };
    let found = operator.git_identity();
    assert_eq!((found.name.as_str(), found.email.as_str()), ("Home", "x@y"));
    let nobody = Operator {
        home: None,
        ..operator
    };
    assert_eq!(nobody.git_identity(), Identity::default());
}
