//! Under which ids a call runs.

use curfew_cell::plan::Identity;
use curfew_policy::Confinement;

use crate::facts::HostFacts;

/// What kuid 0 is called inside. Uid 0 inside would keep its meaning to every program that asks,
/// and capabilities over exec; it is never mapped.
const INNER_ID: u32 = 1000;

/// Root on its own workspace stays kuid 0, renamed; root on somebody's workspace becomes that
/// somebody; everybody else stays who they are.
pub(super) fn identity(confinement: &Confinement, facts: &HostFacts) -> Identity {
    let owner = facts
        .node(&confinement.workspace)
        .map_or(facts.uid, |node| node.uid);
    let (host_uid, host_gid) = match (facts.uid, owner) {
        (0, 0) => (0, 0),
        (0, owner) => (owner, facts.owner_gid),
        (uid, _) => (uid, facts.gid),
    };
    Identity {
        host_uid,
        host_gid,
        inner_uid: inner(host_uid),
        inner_gid: inner(host_gid),
    }
}

fn inner(id: u32) -> u32 {
    if id == 0 { INNER_ID } else { id }
}

/// passwd and group of a call whose ids are not the host's.
pub(super) fn accounts(
    confinement: &Confinement,
    facts: &HostFacts,
    who: Identity,
) -> Option<[String; 2]> {
    if who.host_uid == who.inner_uid && who.host_gid == who.inner_gid {
        return None;
    }
    let name = variable(confinement, "USER")
        .filter(|name| is_plain(name))
        .unwrap_or("curfew");
    let home = variable(confinement, "HOME")
        .filter(|home| !home.contains([':', '\n']))
        .unwrap_or("/");
    let shell = facts.shell.display();
    let (uid, gid) = (who.inner_uid, who.inner_gid);
    let passwd = format!(
        "{name}:x:{uid}:{gid}:{name}:{home}:{shell}\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    );
    Some([passwd, format!("{name}:x:{gid}:\nnogroup:x:65534:\n")])
}

fn variable<'a>(confinement: &'a Confinement, name: &str) -> Option<&'a str> {
    confinement
        .env
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

/// A name that cannot break a line of passwd.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 32
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}
