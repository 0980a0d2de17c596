//! Compiles the eBPF programs and generates their skeleton, if the `bpf` feature asks for it.

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    #[cfg(feature = "bpf")]
    build_skeleton();
}

#[cfg(feature = "bpf")]
fn build_skeleton() {
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let skeleton = std::path::Path::new(&out).join("observe.skel.rs");
    libbpf_cargo::SkeletonBuilder::new()
        .source("bpf/observe.bpf.c")
        .clang_args(["-Ibpf", "-Wall", "-Werror", "-mcpu=v3"])
        .build_and_generate(&skeleton)
        .expect("the BPF object builds (it needs clang, libelf and zlib; see docs/install.md)");
}
