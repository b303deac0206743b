"""Effects: installs a seccomp filter on the calling process. The filter itself is built by pure functions.

Numbers: Linux's arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h (aarch64).
"""

import ctypes
import errno
import platform
import struct
from dataclasses import dataclass

_LD_ABS, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NR_OFFSET, _ARCH_OFFSET, _ARG0_OFFSET, _ARG1_OFFSET, _ARG2_OFFSET, _ARG4_OFFSET = 0, 4, 16, 24, 32, 48
_CLONE_THREAD = 0x00010000
_AF_UNIX = 1
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_PR_SET_PDEATHSIG, _PR_SET_MM, _PR_SET_PTRACER = 1, 35, 0x59616D61
#: With these a process has the kernel send a signal, SIGKILL too, to whom it names (F_SETOWN, F_SETOWN_EX, FIOSETOWN,
#: SIOCSPGRP).
_F_SETOWN, _F_SETOWN_EX, _FIOSETOWN, _SIOCSPGRP = 8, 15, 0x8901, 0x8902


@dataclass(frozen=True, slots=True)
class Machine:
    """What differs between instruction sets: the audit constant and the system calls' numbers."""

    audit_arch: int
    x32_bit: int | None
    numbers: dict[str, int]


# The calls whose numbers differ; those added since Linux 5.1 share one number everywhere.
_COMMON = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442,
    "quotactl_fd": 443, "process_mrelease": 448, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466,
}  # fmt: skip
_X86_64 = {
    "connect": 42, "accept": 43, "sendto": 44, "sendmsg": 46, "bind": 49, "listen": 50, "accept4": 288, "sendmmsg": 307,
    "socket": 41, "socketpair": 53, "shmget": 29, "shmat": 30, "shmctl": 31, "clone": 56, "fork": 57, "vfork": 58,
    "execve": 59, "kill": 62, "semget": 64, "msgget": 68, "chmod": 90, "chown": 92, "lchown": 94, "ptrace": 101,
    "syslog": 103, "setpgid": 109, "setsid": 112, "rt_sigqueueinfo": 129, "utime": 132, "mknod": 133,
    "personality": 135, "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "vhangup": 153,
    "pivot_root": 155, "prctl": 157, "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164,
    "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
    "fcntl": 72, "ioctl": 16, "setrlimit": 160,
    "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "setxattr": 188, "lsetxattr": 189, "removexattr": 197, "lremovexattr": 198, "tkill": 200,
    "sched_setaffinity": 203, "clock_settime": 227, "tgkill": 234, "utimes": 235, "mq_open": 240, "kexec_load": 246,
    "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251, "migrate_pages": 256, "mknodat": 259,
    "fchownat": 260, "futimesat": 261, "fchmodat": 268, "unshare": 272, "move_pages": 279, "utimensat": 280,
    "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "sched_setattr": 314, "memfd_create": 319,
    "kexec_file_load": 320, "bpf": 321, "execveat": 322, "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = {
    "bind": 200, "listen": 201, "accept": 202, "connect": 203, "sendto": 206, "sendmsg": 211, "accept4": 242,
    "sendmmsg": 269,
    "fcntl": 25, "ioctl": 29, "setrlimit": 164,
    "setxattr": 5, "lsetxattr": 6, "removexattr": 14, "lremovexattr": 15, "ioprio_set": 30, "mknodat": 33,
    "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "fchmodat": 53, "fchownat": 54, "vhangup": 58,
    "quotactl": 60, "utimensat": 88, "acct": 89, "personality": 92, "unshare": 97, "kexec_load": 104,
    "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117,
    "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122, "kill": 129, "tkill": 130,
    "tgkill": 131, "rt_sigqueueinfo": 138, "setpriority": 140, "reboot": 142, "setpgid": 154, "setsid": 157,
    "sethostname": 161, "setdomainname": 162, "prctl": 167, "settimeofday": 170, "adjtimex": 171, "mq_open": 180,
    "msgget": 186, "semget": 190, "shmget": 194, "shmctl": 195, "shmat": 196, "socket": 198, "socketpair": 199,
    "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "execve": 221, "swapon": 224, "swapoff": 225,
    "migrate_pages": 238, "move_pages": 239, "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "prlimit64": 261,
    "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
    "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "sched_setattr": 274,
    "memfd_create": 279, "bpf": 280, "execveat": 281, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
MACHINES = {
    "x86_64": Machine(0xC000003E, 0x40000000, _X86_64 | _COMMON),
    "aarch64": Machine(0xC00000B7, None, _AARCH64 | _COMMON),
}

_ALWAYS_REFUSED = (
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp",
    "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "mount", "umount2", "move_mount", "open_tree", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "pivot_root", "chroot", "setns", "unshare", "bpf",
    "perf_event_open", "keyctl", "add_key", "request_key", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "userfaultfd", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
    "swapon", "swapoff", "acct", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname",
    "setdomainname", "iopl", "ioperm", "quotactl", "quotactl_fd", "syslog", "vhangup", "personality", "shmget",
    "shmat", "shmctl", "semget", "msgget", "mq_open", "fanotify_init", "name_to_handle_at", "open_by_handle_at",
    "setxattr", "lsetxattr", "removexattr", "lremovexattr", "setxattrat", "removexattrat", "chown", "lchown",
    "fchownat", "utime", "utimes", "futimesat", "utimensat", "mknod", "mknodat", "setpriority", "sched_setparam",
    "sched_setscheduler", "sched_setattr", "ioprio_set", "migrate_pages", "move_pages", "setsid", "setpgid",
    "setrlimit",
)  # fmt: skip
_REFUSED_WITHOUT_EXEC = ("execve", "execveat", "fork", "vfork", "chmod", "fchmodat", "fchmodat2")
#: What opens a way to another process; data flows on through what is connected already.
_NEW_CONNECTIONS = ("socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendmsg", "sendmmsg")
_ONLY_SELF = ("kill", "tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_SELF_OR_ZERO = ("sched_setaffinity",)


def build_filter(machine: Machine, own_pid: int, *, may_exec: bool, unix_sockets: bool, memfd: bool) -> bytes:
    """The BPF program: everything is allowed but what is named here; a refusal is EPERM, never a kill.

    ``may_exec`` leaves fork and execve to Landlock's rules; signals and limits reach ``own_pid`` alone.
    """
    refuse = _ret(_ERRNO | errno.EPERM)
    rules: dict[str, list[bytes]] = {name: [refuse] for name in _ALWAYS_REFUSED}
    if not may_exec:
        rules |= {name: [refuse] for name in _REFUSED_WITHOUT_EXEC}
        # clone3 keeps its flags in memory where a filter cannot look; without it glibc uses clone.
        rules["clone3"] = [_ret(_ERRNO | errno.ENOSYS)]
        rules["clone"] = [_load(_ARG0_OFFSET), _jump(_JSET, _CLONE_THREAD, 1, 0), refuse, _ret(_ALLOW)]
    if not memfd:
        rules["memfd_create"] = [refuse]
    rules["socket"] = _allow_values((_AF_UNIX,)) if unix_sockets else [refuse]
    rules["socketpair"] = _allow_values((_AF_UNIX,))
    rules |= {name: _allow_values((own_pid,)) for name in _ONLY_SELF}
    rules |= {name: _allow_values((0, own_pid)) for name in _SELF_OR_ZERO}
    # With no new limit alone: root could raise what confines it.
    rules["prlimit64"] = _only_null(_ARG2_OFFSET)
    rules["fcntl"] = _refuse_values((_F_SETOWN, _F_SETOWN_EX), _ARG1_OFFSET)
    rules["ioctl"] = _refuse_values((_FIOSETOWN, _SIOCSPGRP), _ARG1_OFFSET)
    rules["prctl"] = _refuse_values((_PR_SET_PDEATHSIG, _PR_SET_MM, _PR_SET_PTRACER))
    return b"".join(_prologue(machine) + _by_number(machine, rules) + [_ret(_ALLOW)])


def build_lock(machine: Machine) -> bytes:
    """A second filter for a process whose driver is connected: no socket is made or led anywhere any more.

    A filter cannot read the path of a connect(2), so before this one AF_UNIX sockets reach every path.
    """
    refuse = _ret(_ERRNO | errno.EPERM)
    rules: dict[str, list[bytes]] = {name: [refuse] for name in _NEW_CONNECTIONS}
    rules["sendto"] = _only_null(_ARG4_OFFSET)
    return b"".join(_prologue(machine) + _by_number(machine, rules) + [_ret(_ALLOW)])


def install(program: bytes) -> None:
    """Sets no_new_privs and the filter, for good, on this thread and all it will start. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    code = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code)))
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(header), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp filter")


def this_machine() -> Machine | None:
    """None on an instruction set whose numbers are not listed here."""
    return MACHINES.get(platform.machine())


def _prologue(machine: Machine) -> list[bytes]:
    code = [_load(_ARCH_OFFSET), _jump(_JEQ, machine.audit_arch, 1, 0), _ret(_KILL), _load(_NR_OFFSET)]
    if machine.x32_bit is not None:
        code += [_jump(_JGE, machine.x32_bit, 0, 1), _ret(_ERRNO | errno.ENOSYS)]
    return code


def _by_number(machine: Machine, rules: dict[str, list[bytes]]) -> list[bytes]:
    numbered = ((machine.numbers[name], body) for name, body in rules.items() if name in machine.numbers)
    return [step for number, body in numbered for step in (_jump(_JEQ, number, 0, len(body)), *body)]


def _allow_values(values: tuple[int, ...]) -> list[bytes]:
    return [_load(_ARG0_OFFSET), *_match(values, _ret(_ALLOW)), _ret(_ERRNO | errno.EPERM)]


def _only_null(pointer: int) -> list[bytes]:
    """Allowed where this argument is a null pointer: both its halves must be 0."""
    refuse, halves = _ret(_ERRNO | errno.EPERM), (pointer, pointer + 4)
    return [step for half in halves for step in (_load(half), _jump(_JEQ, 0, 1, 0), refuse)] + [_ret(_ALLOW)]


def _refuse_values(values: tuple[int, ...], argument: int = _ARG0_OFFSET) -> list[bytes]:
    return [_load(argument), *_match(values, _ret(_ERRNO | errno.EPERM)), _ret(_ALLOW)]


def _match(values: tuple[int, ...], then: bytes) -> list[bytes]:
    return [step for value in values for step in (_jump(_JEQ, value, 0, 1), then)]


def _load(offset: int) -> bytes:
    return struct.pack("HBBI", _LD_ABS, 0, 0, offset)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _ret(action: int) -> bytes:
    return struct.pack("HBBI", _RET, 0, 0, action)
