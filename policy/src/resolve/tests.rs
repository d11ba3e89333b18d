use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::confinement::Access;
use crate::gitconfig::Identity;
use crate::profile::{Origin, Profile, parse};

/// A host made of paths that exist and links between them.
#[derive(Clone)]
struct World {
    home: PathBuf,
    passwd_home: Option<PathBuf>,
    variables: BTreeMap<String, String>,
    paths: BTreeSet<PathBuf>,
    links: BTreeMap<PathBuf, PathBuf>,
}

impl World {
    fn new(paths: &[&str]) -> World {
        let mut world = World {
            home: "/home/a".into(),
            passwd_home: Some("/home/a".into()),
            variables: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            paths: BTreeSet::new(),
            links: BTreeMap::new(),
        };
        for path in [
            "/",
            "/home/a/w",
            "/home/b",
            "/root",
            "/usr/bin",
            "/bin",
            "/tmp",
            "/etc/shadow",
        ]
        .iter()
        .chain(paths)
        {
            world
                .paths
                .extend(Path::new(path).ancestors().map(Path::to_path_buf));
        }
        world
    }

    fn set(mut self, name: &str, value: &str) -> World {
        self.variables.insert(name.into(), value.into());
        self
    }

    fn link(mut self, from: &str, to: &str) -> World {
        self.links.insert(from.into(), to.into());
        self.paths
            .extend(Path::new(from).ancestors().skip(1).map(Path::to_path_buf));
        self
    }

    fn look(&self, path: &Path) -> Option<PathBuf> {
        for above in path.ancestors() {
            if let Some(to) = self.links.get(above) {
                return self.look(&to.join(path.strip_prefix(above).unwrap()));
            }
        }
        let tidy: PathBuf = path.components().collect();
        self.paths.contains(&tidy).then_some(tidy)
    }

    fn resolve(&self, profile: &Profile, asked: &Asked) -> Result<Resolved, PolicyError> {
        let host = Host {
            home: Some(&self.home),
            passwd_home: self.passwd_home.as_deref(),
            user: "a",
            shell: Path::new("/bin/sh"),
            variables: &self.variables,
            look: &|path| self.look(path),
        };
        resolve(profile, asked, &host)
    }

    fn confinement(&self, mode: Mode, workspace: &str) -> Confinement {
        self.resolve(&default(), &asked(mode, workspace))
            .unwrap()
            .confinement
    }
}

fn default() -> Profile {
    Profile::load("default", &|_| None).unwrap()
}

fn with(text: &str) -> Profile {
    Profile::load("mine", &|name| (name == "mine").then(|| text.to_owned())).unwrap()
}

fn asked(mode: Mode, workspace: &str) -> Asked {
    Asked {
        mode: Some(mode),
        net: None,
        workspace: workspace.into(),
        add_dirs: Vec::new(),
        secrets: Vec::new(),
        env: Vec::new(),
        wall_ms: None,
        identity: Identity::default(),
    }
}

fn strings(paths: &[PathBuf]) -> Vec<&str> {
    paths.iter().map(|path| path.to_str().unwrap()).collect()
}

fn variable<'a>(confinement: &'a Confinement, name: &str) -> Option<&'a str> {
    confinement
        .env
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

#[test]
fn the_home_is_closed_and_the_workspace_in_it_is_not() {
    let world = World::new(&[
        "/home/a/.ssh/id_rsa",
        "/home/a/.cargo/bin",
        "/home/a/.cargo/registry",
        "/home/a/.netrc",
    ]);
    let c = world.confinement(Mode::WorkspaceWrite, "/home/a/w");
    assert_eq!(strings(&c.write), ["/home/a/w"]);
    assert_eq!(strings(&c.closed), ["/home", "/home/a", "/root"]);
    assert_eq!(
        strings(&c.read),
        ["/home/a/.cargo/bin", "/home/a/.cargo/registry"]
    );
    assert_eq!(
        strings(&c.private),
        [
            "/home/a/.cache",
            "/home/a/.cargo",
            "/home/a/.gradle",
            "/home/a/.npm"
        ]
    );
    assert_eq!(
        strings(&c.mask),
        ["/etc/shadow", "/home/a/.netrc", "/home/a/.ssh/id_rsa"]
    );
    for (path, access) in [
        ("/home/a/w/src/main.rs", Access::Write),
        ("/home/a/.ssh/id_rsa", Access::Hidden),
        ("/home/a/.ssh/known_hosts", Access::Hidden),
        ("/home/a/.bashrc", Access::Hidden),
        ("/home/b/mail", Access::Hidden),
        ("/home/a/.cargo/credentials.toml", Access::Private),
        ("/home/a/.cargo/bin/cargo", Access::Read),
        ("/usr/bin/git", Access::Read),
        ("/etc/shadow", Access::Hidden),
    ] {
        assert_eq!(c.access(Path::new(path)), access, "{path}");
    }
}

#[test]
fn read_only_grants_the_workspace_for_reading_and_no_private_folder() {
    let c = World::new(&[]).confinement(Mode::ReadOnly, "/home/a/w");
    assert!(c.write.is_empty() && c.private.is_empty());
    assert_eq!(strings(&c.read), ["/home/a/w"]);
    assert_eq!(c.access(Path::new("/home/a/w/x")), Access::Read);
}

#[test]
fn full_access_has_no_rows_and_the_host_network() {
    let world = World::new(&["/tmp/bin"]).set("PATH", "/tmp/bin:/usr/bin");
    let c = world.confinement(Mode::DangerFullAccess, "/home/a/w");
    assert!(c.read.is_empty() && c.closed.is_empty() && c.mask.is_empty() && c.protect.is_empty());
    assert_eq!(c.net, Net::Full);
    assert_eq!(c.access(Path::new("/etc/passwd")), Access::Write);
    assert_eq!(variable(&c, "PATH"), Some("/tmp/bin:/usr/bin"));
}

#[test]
fn too_broad_workspaces_are_refused_for_writing_and_noted_for_reading() {
    let world = World::new(&["/home/a/.netrc", "/home/a/notes"]);
    for broad in ["/", "/home", "/home/a"] {
        let error = world
            .resolve(&default(), &asked(Mode::WorkspaceWrite, broad))
            .unwrap_err();
        assert!(error.to_string().contains("--mode read-only"), "{error}");
        let read = world
            .resolve(&default(), &asked(Mode::ReadOnly, broad))
            .unwrap();
        assert_eq!(read.notices.len(), 1, "{broad}");
    }
    let home = world.confinement(Mode::ReadOnly, "/home/a");
    assert_eq!(home.access(Path::new("/home/a/notes")), Access::Read);
    assert_eq!(home.access(Path::new("/home/a/.netrc")), Access::Hidden);
    let mut add = asked(Mode::WorkspaceWrite, "/home/a/w");
    add.add_dirs = vec!["/home/a".into()];
    assert!(world.resolve(&default(), &add).is_err());
}

#[test]
fn a_masked_workspace_is_a_contradiction_and_one_below_a_mask_is_not() {
    let world = World::new(&["/home/a/.docker/proj", "/home/a/.docker/config.json"]);
    let error = world
        .resolve(&default(), &asked(Mode::WorkspaceWrite, "/home/a/.docker"))
        .unwrap_err();
    assert!(error.to_string().contains("masked"), "{error}");
    let c = world.confinement(Mode::WorkspaceWrite, "/home/a/.docker/proj");
    assert_eq!(c.access(Path::new("/home/a/.docker/proj/x")), Access::Write);
    assert_eq!(
        c.access(Path::new("/home/a/.docker/config.json")),
        Access::Hidden
    );
    assert_eq!(c.access(Path::new("/home/a/.docker/other")), Access::Hidden);
}

#[test]
fn path_directories_in_the_home_are_shown_unless_they_could_harm() {
    let world = World::new(&["/home/a/tools/bin", "/home/a/w/bin", "/home/a/.ssh/bin", "/home/a/.gnupg/bin", "/tmp/x/bin", "/opt/y"])
        .set("PATH", "/home/a/tools/bin:/home/a/w/bin:rel:.:/home/a:/home/a/.gnupg/bin:/tmp/x/bin:/opt/y:/usr/bin:/home/a/tools/bin:/nowhere/../etc:/home/a/l:/home/a/m")
        .link("/home/a/l", "/home/a/w/bin")
        .link("/home/a/m", "/home/a");
    let c = world.confinement(Mode::WorkspaceWrite, "/home/a/w");
    assert_eq!(strings(&c.read), ["/home/a/tools/bin", "/tmp/x/bin"]);
    assert_eq!(
        variable(&c, "PATH"),
        Some("/home/a/tools/bin:/tmp/x/bin:/opt/y:/usr/bin")
    );
    assert_eq!(c.access(Path::new("/home/a/mail")), Access::Hidden);
}

#[test]
fn help_never_narrows_a_root_and_never_opens_a_mask() {
    let world = World::new(&["/home/a/go/bin", "/home/a/go/pkg", "/home/a/w/.venv/bin"])
        .set("VIRTUAL_ENV", "/home/a/w/.venv");
    let c = world.confinement(Mode::WorkspaceWrite, "/home/a/go");
    assert_eq!(c.access(Path::new("/home/a/go/pkg/mod")), Access::Write);
    let c = world.confinement(Mode::WorkspaceWrite, "/home/a/w");
    assert_eq!(c.access(Path::new("/home/a/w/.venv/lib")), Access::Write);
}

#[test]
fn an_operators_read_row_narrows_a_root() {
    let world = World::new(&["/home/a/w/vendor"]);
    let profile = with("read = ['$WORKSPACE/vendor']\nmask = ['$WORKSPACE/.env']");
    let c = world
        .resolve(&profile, &asked(Mode::WorkspaceWrite, "/home/a/w"))
        .unwrap()
        .confinement;
    assert_eq!(c.access(Path::new("/home/a/w/vendor/x")), Access::Read);
    assert_eq!(c.access(Path::new("/home/a/w/x")), Access::Write);
}

#[test]
fn a_missing_root_is_an_error_unless_optional() {
    let world = World::new(&[]);
    let error = world
        .resolve(
            &with("read = ['/opt/sdk']"),
            &asked(Mode::ReadOnly, "/home/a/w"),
        )
        .unwrap_err();
    assert!(
        matches!(error, PolicyError::MissingRoot { key: "read", .. }),
        "{error}"
    );
    let optional = with(
        "read = [{ path = '/opt/sdk', optional = true }]\nwrite = [{ path = '/data', optional = true }]",
    );
    assert!(
        world
            .resolve(&optional, &asked(Mode::WorkspaceWrite, "/home/a/w"))
            .is_ok()
    );
    let mut gone = asked(Mode::WorkspaceWrite, "/home/a/w");
    gone.add_dirs = vec!["/gone".into()];
    assert!(matches!(
        world.resolve(&default(), &gone),
        Err(PolicyError::MissingRoot {
            key: "--add-dir",
            ..
        })
    ));
}

#[test]
fn links_to_secrets_are_covered_under_both_names() {
    let world = World::new(&["/data/aws", "/data/x", "/home/a/w"])
        .link("/home/a/.aws", "/data/aws")
        .link("/home/a/sdk", "/data");
    let c = world.confinement(Mode::WorkspaceWrite, "/home/a/w");
    assert_eq!(c.access(Path::new("/data/aws/credentials")), Access::Hidden);
    assert_eq!(c.access(Path::new("/data/x")), Access::Read);
    assert!(
        !strings(&c.read).contains(&"/home/a/sdk"),
        "it would show the masked directory"
    );
}

#[test]
fn homes_of_daemons_do_not_close_the_system() {
    for home in ["/", "/usr/sbin", "/bin", "/dev", "/var", "relative"] {
        let mut world = World::new(&["/usr/sbin", "/dev", "/var", "/srv/w"]);
        world.home = home.into();
        world.passwd_home = Some(home.into());
        let c = world.confinement(Mode::WorkspaceWrite, "/srv/w");
        assert_eq!(strings(&c.closed), ["/home", "/root"], "{home}");
        assert_eq!(variable(&c, "HOME"), Some("/tmp"));
    }
    let mut world = World::new(&["/srv/w"]);
    world.passwd_home = Some("/root".into());
    let c = world.confinement(Mode::WorkspaceWrite, "/srv/w");
    assert_eq!(strings(&c.closed), ["/home", "/home/a", "/root"]);
    assert!(
        strings(&c.private).contains(&concat!("/root", "/.cache")),
        "each home gets its rows"
    );
}

#[test]
fn a_home_below_tmp_works() {
    let mut world = World::new(&["/tmp/t/home/.cargo/bin", "/tmp/t/ws", "/tmp/t/home/.netrc"]);
    world.home = "/tmp/t/home".into();
    let world = world.set("PATH", "/tmp/t/home/.cargo/bin:/usr/bin");
    let c = world.confinement(Mode::WorkspaceWrite, "/tmp/t/ws");
    assert_eq!(c.access(Path::new("/tmp/t/home/x")), Access::Hidden);
    assert_eq!(c.access(Path::new("/tmp/t/home/.netrc")), Access::Hidden);
    assert_eq!(
        c.access(Path::new("/tmp/t/home/.cargo/bin/cargo")),
        Access::Read
    );
    assert!(strings(&c.mask).contains(&"/tmp/t/home/.netrc"));
}

#[test]
fn the_environment_is_built_from_nothing() {
    let world = World::new(&[])
        .set("OPENAI_API_KEY", "sk")
        .set("AWS_SECRET_ACCESS_KEY", "x")
        .set("LD_PRELOAD", "x")
        .set("TZ", "Asia/Seoul")
        .set("JAVA_HOME", "/opt/j");
    let mut ask = asked(Mode::WorkspaceWrite, "/home/a/w");
    ask.env = vec![
        EnvRow::parse("FOO=b=c").unwrap(),
        EnvRow::parse("MISSING").unwrap(),
    ];
    let c = world.resolve(&default(), &ask).unwrap().confinement;
    let env: Vec<String> = c
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(
        env.join("\n"),
        "CURFEW=1\nFOO=b=c\nGIT_AUTHOR_EMAIL=curfew@localhost\nGIT_AUTHOR_NAME=curfew\nGIT_COMMITTER_EMAIL=curfew@localhost\n\
         GIT_COMMITTER_NAME=curfew\nGIT_TERMINAL_PROMPT=0\nHOME=/home/a\nJAVA_HOME=/opt/j\nLANG=C.UTF-8\nLOGNAME=a\nPAGER=cat\n\
         PATH=/usr/bin:/bin\nSHELL=/bin/sh\nTERM=dumb\nTMPDIR=/tmp\nTZ=Asia/Seoul\nUSER=a"
    );
    ask.env = vec![EnvRow::parse("OPENAI_API_KEY").unwrap()];
    assert!(matches!(
        world.resolve(&default(), &ask),
        Err(PolicyError::Env { .. })
    ));
}

#[test]
fn a_key_file_is_masked_wherever_it_is() {
    let world =
        World::new(&["/opt/keys/model", "/home/a/w/key"]).link("/opt/key", "/opt/keys/model");
    let mut ask = asked(Mode::WorkspaceWrite, "/home/a/w");
    ask.secrets = vec!["/opt/key".into(), "/home/a/w/key".into(), "/gone".into()];
    let c = world.resolve(&default(), &ask).unwrap().confinement;
    for path in ["/opt/key", "/opt/keys/model", "/home/a/w/key"] {
        assert_eq!(c.access(Path::new(path)), Access::Hidden, "{path}");
    }
    assert_eq!(c.access(Path::new("/gone")), Access::Read);
}

#[test]
fn a_null_history_masks_no_device() {
    let world = World::new(&["/dev/null", "/home/a/k1", "/srv/k2"])
        .set("HISTFILE", "/dev/null")
        .set("KUBECONFIG", "/home/a/k1:/srv/k2:rel");
    let c = world.confinement(Mode::WorkspaceWrite, "/home/a/w");
    assert_eq!(strings(&c.mask), ["/etc/shadow", "/home/a/k1", "/srv/k2"]);
}

#[test]
fn what_the_log_cannot_name_is_refused() {
    use std::os::unix::ffi::OsStringExt as _;
    let odd = PathBuf::from(std::ffi::OsString::from_vec(b"/srv/\xff".to_vec()));
    let mut world = World::new(&[]);
    world.paths.insert(odd.clone());
    let mut ask = asked(Mode::WorkspaceWrite, "/home/a/w");
    ask.workspace = odd;
    let error = world.resolve(&default(), &ask).unwrap_err();
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

/// A small tree of names, so that rows meet each other.
fn small_path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4)
        .prop_map(|parts| format!("/srv/{}", parts.join("/")))
}

proptest! {
    /// Whatever rows meet: at each listed path the strongest row's kind holds, and below it until
    /// a longer row.
    #[test]
    fn the_longest_path_wins_and_deny_beats_write_beats_read(
        read in prop::collection::vec(small_path(), 0..4),
        write in prop::collection::vec(small_path(), 0..4),
        mask in prop::collection::vec(small_path(), 0..4),
        probe in small_path(),
    ) {
        let mut world = World::new(&[]);
        for path in read.iter().chain(&write).chain(&mask).chain([&probe]) {
            world.paths.extend(Path::new(path).ancestors().map(Path::to_path_buf));
        }
        let quoted = |list: &[String]| format!("{list:?}");
        let text = format!("read = {}\nwrite = {}\nmask = {}", quoted(&read), quoted(&write), quoted(&mask));
        match world.resolve(&with(&text), &asked(Mode::WorkspaceWrite, "/home/a/w")) {
            // Writing where a mask stands is the only contradiction.
            Err(_) => prop_assert!(write.iter().any(|path| mask.contains(path))),
            Ok(resolved) => {
                let longest = |list: &[String]| list.iter().filter(|row| Path::new(&probe).starts_with(row)).map(|row| row.len()).max().unwrap_or(0);
                let (r, w, m) = (longest(&read), longest(&write), longest(&mask));
                let expected = match r.max(w).max(m) {
                    0 => Access::Read,
                    most if most == m => Access::Hidden,
                    most if most == w => Access::Write,
                    _ => Access::Read,
                };
                prop_assert_eq!(resolved.confinement.access(Path::new(&probe)), expected);
            }
        }
    }

    #[test]
    fn no_path_is_in_two_lists(read in prop::collection::vec(small_path(), 0..4), write in prop::collection::vec(small_path(), 0..4), mask in prop::collection::vec(small_path(), 0..4)) {
        let mut world = World::new(&[]);
        for path in read.iter().chain(&write).chain(&mask) {
            world.paths.extend(Path::new(path).ancestors().map(Path::to_path_buf));
        }
        let text = format!("read = {read:?}\nwrite = {write:?}\nmask = {mask:?}");
        if let Ok(resolved) = world.resolve(&with(&text), &asked(Mode::WorkspaceWrite, "/home/a/w")) {
            let c = resolved.confinement;
            let mut all: Vec<&PathBuf> = [&c.write, &c.read, &c.private, &c.closed, &c.mask].into_iter().flatten().collect();
            let before = all.len();
            all.sort();
            all.dedup();
            prop_assert_eq!(all.len(), before);
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC*|[a-z=\\[\\]\"'{}~/$ \n]{0,80}") {
        let _ = parse("fuzz", &text, Origin::Operator);
    }
}
