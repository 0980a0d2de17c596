//! Compiles the eBPF programs and generates their skeleton, if the `bpf` feature asks for it.

fn main() {
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rerun-if-changed=tests/late.bpf.c");
    println!("cargo::rerun-if-changed=tests/spender.bpf.c");
    #[cfg(feature = "bpf")]
    build_programs();
}

#[cfg(feature = "bpf")]
fn build_programs() {
    use libbpf_cargo::SkeletonBuilder;
    use std::path::Path;

    const TOOLS: &str =
        "the BPF object builds (it needs clang, libelf and zlib; see docs/install.md)";
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let builder = |source: &str| {
        let mut builder = SkeletonBuilder::new();
        builder.source(source).clang_args(["-Iprograms", "-Wall", "-Werror", "-mcpu=v3"]);
        builder
    };
    for name in ["observe", "count", "trace"] {
        let skeleton = Path::new(&out).join(format!("{name}.skel.rs"));
        builder(&format!("programs/{name}.bpf.c")).build_and_generate(&skeleton).expect(TOOLS);
    }
    // The last two are for tests.
    for (source, object) in [
        ("programs/open_file.bpf.c", "open_file.bpf.o"),
        ("tests/late.bpf.c", "late.bpf.o"),
        ("tests/spender.bpf.c", "spender.bpf.o"),
    ] {
        builder(source).obj(Path::new(&out).join(object)).build().expect(TOOLS);
    }
}
