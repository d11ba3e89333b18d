//! The syscall filter: rows of the plan to a BPF program.
//!
//! Bodies (conditions on arguments) are compiled by seccompiler. Dispatch is ours, a binary tree
//! over number ranges: when a filter is installed the kernel runs it once for every syscall number
//! to find those that are always allowed (seccomp_cache_prepare), so a linear chain of a hundred
//! comparisons costs 110 us per call, and a tree 47. The rest of the cost is the program's length
//! (0.14 us an instruction, most of it the JIT), so equal bodies exist once.
//!
//! Shape: architecture check, number check, tree, bodies. What no row matches is allowed.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::fault::broken;
use crate::plan::{ArgOp, ArgRule, Audience, SyscallAction, SyscallRule};
use crate::protocol::SetupFault;
use crate::syscalls::{Known, by_name};

/// The longest program the kernel takes (linux/bpf_common.h).
const INSTRUCTIONS_MAX: usize = 4096;
/// x86_64 numbers from here on are the x32 ABI: the same calls under other numbers.
const X32_BIT: u32 = 0x4000_0000;

const LOAD_WORD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_GREATER_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGUMENTS: u32 = 16;
const ARGUMENT_LAST: u8 = 5;

/// Stand-ins in seccompiler's output for what it cannot express: it has no notification action, and
/// a body that does not match must go on to the next one.
const MARK_MATCH: u32 = 0x5001;
const MARK_MISS: u32 = 0x5002;

/// Whether matches can be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// `Refuse` and `Observe` notify.
    Present,
    /// `Refuse` answers its errno by itself, `Observe` is nothing.
    Absent,
}

/// A compiled filter.
#[derive(Clone, Debug)]
pub struct Filter {
    pub program: BpfProgram,
}

/// Compiles the rows for one audience.
pub fn compile(
    rows: &[SyscallRule],
    audience: Audience,
    listener: Listener,
) -> Result<Filter, SetupFault> {
    let mut leaves: BTreeMap<u32, Leaf> = BTreeMap::new();
    let mut compiled: Vec<(&[ArgRule], u32, BpfProgram)> = Vec::new();
    for row in in_order(rows, audience) {
        let Some(verdict) = verdict(row.action, listener) else {
            continue;
        };
        let Some(known) = by_name(&row.name) else {
            return Err(bad(row, "no architecture has such a system call"));
        };
        let Known::Number(number) = known else {
            continue;
        };
        let number = u32::try_from(number).map_err(|_| bad(row, "a number out of range"))?;
        let leaf = leaves.entry(number).or_default();
        if leaf.end.is_some() {
            continue; // a row without conditions stands before this one
        }
        if row.args.is_empty() {
            leaf.end = Some(verdict);
            continue;
        }
        // The same conditions come back under many names.
        let known = compiled
            .iter()
            .find(|(args, v, _)| *args == row.args && *v == verdict);
        let body = match known {
            Some((_, _, body)) => body.clone(),
            None => {
                let body = body(row, verdict)?;
                compiled.push((&row.args, verdict, body.clone()));
                body
            }
        };
        leaf.bodies.push(body);
    }
    let mut program = preamble()?;
    emit_dispatch(leaves, &mut program);
    if program.len() > INSTRUCTIONS_MAX {
        let text = format!("the syscall filter has {} instructions", program.len());
        return Err(broken("seccomp", None, libc::E2BIG, text));
    }
    Ok(Filter { program })
}

/// Rows for this audience, refusals first: they win over observation.
pub fn in_order(rows: &[SyscallRule], audience: Audience) -> impl Iterator<Item = &SyscallRule> {
    let mine = move |row: &&SyscallRule| row.audience == Audience::All || row.audience == audience;
    let observes = |row: &&SyscallRule| row.action == SyscallAction::Observe;
    let first = rows.iter().filter(mine).filter(move |r| !observes(r));
    let then = rows.iter().filter(mine).filter(observes);
    first.chain(then)
}

/// Whether a row matches these arguments: what the program decides, said again in Rust, to tell
/// which row a notification came from.
pub fn matches(row: &SyscallRule, args: &[u64; 6]) -> bool {
    row.args.iter().all(|arg| {
        let Some(value) = args.get(usize::from(arg.index)) else {
            return false;
        };
        let width = if arg.low32 {
            u64::from(u32::MAX)
        } else {
            u64::MAX
        };
        let value = value & width;
        match arg.op {
            ArgOp::Equals { value: v } => value == v & width,
            ArgOp::Differs { value: v } => value != v & width,
            ArgOp::AnyBit { mask } => value & mask != 0,
            ArgOp::Masked { mask, value: v } => value & mask == v & mask & width,
        }
    })
}

/// What happens to one syscall number: bodies in order, then an end.
#[derive(Default, PartialEq)]
struct Leaf {
    bodies: Vec<BpfProgram>,
    /// Set by a row without conditions; what comes after it never runs.
    end: Option<u32>,
}

fn verdict(action: SyscallAction, listener: Listener) -> Option<u32> {
    let errno = |errno: i32| libc::SECCOMP_RET_ERRNO | (errno as u32 & libc::SECCOMP_RET_DATA);
    match (action, listener) {
        (SyscallAction::Quiet { errno: e }, _) => Some(errno(e)),
        (SyscallAction::Refuse { errno: e }, Listener::Absent) => Some(errno(e)),
        (SyscallAction::Observe, Listener::Absent) => None,
        (SyscallAction::Refuse { .. } | SyscallAction::Observe, Listener::Present) => {
            Some(libc::SECCOMP_RET_USER_NOTIF)
        }
    }
}

/// Architecture and number checks: a 32-bit call has other numbers, so it is not judged but fatal.
fn preamble() -> Result<BpfProgram, SetupFault> {
    let arch = arch().map_err(|e| broken("seccomp", None, libc::ENOSYS, e))?;
    // seccompiler's own check, taken from an empty filter of its: [load, compare, kill, return].
    let empty = SeccompFilter::new(
        BTreeMap::new(),
        SeccompAction::Allow,
        SeccompAction::Trap,
        arch,
    )
    .and_then(BpfProgram::try_from)
    .map_err(|e| broken("seccomp", None, libc::EINVAL, e.to_string()))?;
    let mut program: BpfProgram = empty.into_iter().take(3).collect();
    debug_assert_eq!(program[0].k, OFFSET_ARCH);
    program.push(statement(LOAD_WORD, OFFSET_NUMBER));
    program.push(jump(JUMP_GREATER_EQUAL, X32_BIT, 0, 1));
    program.push(ret(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32));
    Ok(program)
}

/// A row's conditions: returns the verdict when they hold and falls out at its end when they do not.
///
/// Comparisons are compiled by seccompiler. "Any of these bits" is one instruction of the machine
/// that it does not use (it would need one comparison per bit), so those tests are ours.
fn body(row: &SyscallRule, verdict: u32) -> Result<BpfProgram, SetupFault> {
    let mut body = comparisons(row)?;
    for arg in &row.args {
        if let ArgOp::AnyBit { mask } = arg.op {
            body.extend(any_bit(row, arg, mask)?);
        }
    }
    body.push(ret(verdict));
    let end = body.len();
    for (at, instruction) in body.iter_mut().enumerate() {
        if *instruction == MISS {
            *instruction = statement(JUMP, (end - at - 1) as u32);
        }
    }
    Ok(body)
}

/// Stands for "to the end of the body" until the body's length is known: no instruction that
/// seccompiler or this module emits.
const MISS: sock_filter = sock_filter {
    code: RETURN,
    jt: 0,
    jf: 0,
    k: libc::SECCOMP_RET_TRACE | MARK_MISS,
};

/// All comparisons of a row; what comes behind runs when they hold.
fn comparisons(row: &SyscallRule) -> Result<BpfProgram, SetupFault> {
    let conditions = row
        .args
        .iter()
        .filter_map(condition)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| bad(row, &e.to_string()))?;
    if conditions.is_empty() {
        return Ok(Vec::new());
    }
    let arch = arch().map_err(|e| bad(row, &e))?;
    let rule = SeccompRule::new(conditions).map_err(|e| bad(row, &e.to_string()))?;
    let filter = SeccompFilter::new(
        BTreeMap::from([(0, vec![rule])]),
        SeccompAction::Trace(MARK_MISS),
        SeccompAction::Trace(MARK_MATCH),
        arch,
    )
    .and_then(BpfProgram::try_from)
    .map_err(|e| bad(row, &e.to_string()))?;
    // The tree does the work of the first seven: [arch check: 3][load number][compare number][two
    // jumps around the rule]. The last repeats the miss before it. What is left is the comparisons,
    // then [return: match][return: miss].
    let mut body: BpfProgram = filter.into_iter().skip(7).collect();
    body.pop();
    for instruction in &mut body {
        if instruction.code == RETURN && instruction.k == libc::SECCOMP_RET_TRACE | MARK_MATCH {
            *instruction = statement(JUMP, 1);
        }
    }
    Ok(body)
}

fn condition(arg: &ArgRule) -> Option<Result<SeccompCondition, seccompiler::BackendError>> {
    let (length, width) = if arg.low32 {
        (SeccompCmpArgLen::Dword, u64::from(u32::MAX))
    } else {
        (SeccompCmpArgLen::Qword, u64::MAX)
    };
    let (op, value) = match arg.op {
        ArgOp::Equals { value } => (SeccompCmpOp::Eq, value),
        ArgOp::Differs { value } => (SeccompCmpOp::Ne, value),
        ArgOp::Masked { mask, value } => (SeccompCmpOp::MaskedEq(mask & width), value & mask),
        ArgOp::AnyBit { .. } => return None,
    };
    Some(SeccompCondition::new(arg.index, length, op, value & width))
}

fn any_bit(row: &SyscallRule, arg: &ArgRule, mask: u64) -> Result<BpfProgram, SetupFault> {
    if arg.index > ARGUMENT_LAST {
        return Err(bad(row, "a system call has six arguments"));
    }
    let offset = OFFSET_ARGUMENTS + 8 * u32::from(arg.index);
    let (low, high) = if cfg!(target_endian = "little") {
        (offset, offset + 4)
    } else {
        (offset + 4, offset)
    };
    let mut halves = vec![(low, mask as u32)];
    if !arg.low32 {
        halves.push((high, (mask >> 32) as u32));
    }
    halves.retain(|(_, mask)| *mask != 0);
    if halves.is_empty() {
        return Err(bad(row, "a mask that selects no bit"));
    }
    let mut body = Vec::new();
    for (at, (offset, mask)) in halves.iter().enumerate() {
        // A hit jumps over the other half's test, and over the miss.
        let left = 2 * (halves.len() - at - 1) as u8 + 1;
        body.push(statement(LOAD_WORD, *offset));
        body.push(jump(JUMP_ANY_BIT, *mask, left, 0));
    }
    body.push(MISS);
    Ok(body)
}

fn arch() -> Result<TargetArch, String> {
    std::env::consts::ARCH
        .try_into()
        .map_err(|e| format!("{e}"))
}

/// Where a range of syscall numbers goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Return(u32),
    Body(usize),
}

fn emit_dispatch(leaves: BTreeMap<u32, Leaf>, program: &mut BpfProgram) {
    let mut ranges: Vec<(u32, Target)> = vec![(0, Target::Return(libc::SECCOMP_RET_ALLOW))];
    let mut bodies: Vec<Leaf> = Vec::new();
    let mut put = |start: u32, target: Target| match ranges.last_mut() {
        Some(last) if last.0 == start => last.1 = target,
        Some(last) if last.1 == target => {}
        _ => ranges.push((start, target)),
    };
    for (number, leaf) in leaves {
        match leaf {
            Leaf {
                bodies: none,
                end: Some(verdict),
            } if none.is_empty() => put(number, Target::Return(verdict)),
            // Calls that differ in name only (chmod and fchmod) share a body: what an install costs
            // grows with the program's length.
            leaf => match bodies.iter().position(|known| *known == leaf) {
                Some(same) => put(number, Target::Body(same)),
                None => {
                    put(number, Target::Body(bodies.len()));
                    bodies.push(leaf);
                }
            },
        }
        put(number + 1, Target::Return(libc::SECCOMP_RET_ALLOW));
    }
    let mut fixups = Vec::new();
    let base = program.len();
    let tree = emit_tree(&ranges, base, &mut fixups);
    program.extend(tree);
    let mut starts = Vec::with_capacity(bodies.len());
    for leaf in bodies {
        starts.push(program.len());
        leaf.bodies.into_iter().for_each(|b| program.extend(b));
        program.push(ret(leaf.end.unwrap_or(libc::SECCOMP_RET_ALLOW)));
    }
    for (at, body) in fixups {
        program[at] = statement(JUMP, (starts[body] - at - 1) as u32);
    }
}

/// A balanced tree; `fixups` collects (position, body) of jumps that are filled in later.
fn emit_tree(
    ranges: &[(u32, Target)],
    base: usize,
    fixups: &mut Vec<(usize, usize)>,
) -> BpfProgram {
    if let [(_, target)] = ranges {
        return match target {
            Target::Return(verdict) => vec![ret(*verdict)],
            Target::Body(body) => {
                fixups.push((base, *body));
                vec![statement(JUMP, 0)]
            }
        };
    }
    let (left, right) = ranges.split_at(ranges.len() / 2);
    let pivot = right[0].0;
    // Conditional jumps reach 255 instructions; a far one goes through an unconditional jump. The
    // length does not depend on the position, so a trial run tells it.
    let far = emit_tree(left, 0, &mut Vec::new()).len() > usize::from(u8::MAX);
    let head = if far { 2 } else { 1 };
    let left = emit_tree(left, base + head, fixups);
    let right = emit_tree(right, base + head + left.len(), fixups);
    let mut tree = if far {
        vec![
            jump(JUMP_GREATER_EQUAL, pivot, 0, 1),
            statement(JUMP, left.len() as u32),
        ]
    } else {
        vec![jump(JUMP_GREATER_EQUAL, pivot, left.len() as u8, 0)]
    };
    tree.extend(left);
    tree.extend(right);
    tree
}

fn statement(code: u16, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn ret(verdict: u32) -> sock_filter {
    statement(RETURN, verdict)
}

fn bad(row: &SyscallRule, why: &str) -> SetupFault {
    let text = format!("row {} of the syscall list ({}): {why}", row.rule, row.name);
    broken("seccomp", None, libc::EINVAL, text)
}

#[cfg(test)]
mod tests;
