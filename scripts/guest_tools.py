"""Programs and kernel modules of Debian for a guest of scripts/test-kernels. Nothing of it is installed on the host.

Programs are of one suite and keep their own libraries, in a folder that the guest changes its root to.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

SUITE = "trixie"
PACKAGES = ["mdadm", "cryptsetup-bin", "lvm2", "e2fsprogs", "iproute2", "kmod", "liblzma5", "libzstd1"]
PROGRAMS = ["sbin/mdadm", "sbin/cryptsetup", "sbin/lvm", "sbin/mkfs.ext4", "bin/ip", "sbin/modprobe", "sbin/depmod"]
# With those that these need. Kernels that have one built in do not offer it.
MODULES = ["raid1", "dm-mod", "dm-crypt", "algif_skcipher", "xts", "nfsd", "nfsv4"]
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# What modprobe loads by itself, to unpack modules.
LATER = [f"{LIBRARIES}/liblzma.so.5", f"{LIBRARIES}/libzstd.so.1"]


def unpack(packages, folder, env):
    """Downloads these packages, with all that they depend on, and unpacks them."""
    archives = Path(folder, "archives")
    Path(archives, "partial").mkdir(parents=True)
    words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "--download-only", "-t", SUITE]
    subprocess.run([*words, "-o", f"Dir::Cache::archives={archives}", *packages], check=True, env=env)
    for package in archives.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
    shutil.rmtree(archives)


def fetched(work, env):
    """The folder of all programs and libraries."""
    folder = work / "tools"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=work) as part:
            unpack(PACKAGES, f"{part}/all", env)
            shutil.move(f"{part}/all", folder)
    return folder


def in_it(folder, *words):
    """Runs one of the programs with the libraries of the folder; what it prints."""
    words = [str(folder / LOADER), "--inhibit-cache", "--library-path", str(folder / LIBRARIES), *words]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def add_programs(folder, root):
    """Copies the programs to `root`, with the libraries that they need."""
    needed = {LOADER, *LATER}
    for program in PROGRAMS:
        path = folder / "usr" / program
        for library in re.findall(rf"=> {re.escape(str(folder))}/(\S+)", in_it(folder, "--list", str(path))):
            needed.add(library)
        place = root / "usr/sbin" / Path(program).name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    for library in needed:
        (root / library).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / library, root / library)
    for name in ["lib", "lib64", "sbin"]:
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc").mkdir()
    shutil.copy(folder / "etc/mke2fs.conf", root / "etc")


def add_modules(folder, kernel, root):
    """Copies the modules from the unpacked package of a kernel to `root`, with those that they need."""
    modules = next(path for path in kernel.rglob("modules") if path.parent.name == "lib")
    version = next(modules.iterdir()).name
    base = modules.parent.parent
    in_it(folder, str(folder / "usr/sbin/depmod"), "-b", str(base), version)
    lines = (modules / version / "modules.dep").read_text().splitlines()
    needs = dict(line.split(":") for line in lines)
    named = {Path(path).name.split(".")[0].replace("_", "-"): path for path in needs}
    place = root / "usr/lib/modules" / version
    for name in MODULES:
        for path in [found := named[name.replace("_", "-")], *needs[found].split()]:
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(modules / version / path, place / path)
    for name in ["modules.builtin", "modules.builtin.modinfo", "modules.order"]:
        shutil.copy(modules / version / name, place)
    in_it(folder, str(folder / "usr/sbin/depmod"), "-b", str(root / "usr"), version)
