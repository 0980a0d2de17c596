/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pointers that take the verifier less time. */
#ifndef BOWWAVE_POINTER_H
#define BOWWAVE_POINTER_H

extern void *bpf_rdonly_cast(const void *pointer, __u32 type) __ksym __weak;

/* A pointer to the same object that the program can only read through. The verifier trusts the pointers that a
 * tracepoint passes. For each pointer that a program loads through one, on each path, it then compares the names of
 * all types of the kernel, which takes about 2 ms. The programs pass no pointer on to the kernel, so they need no
 * trust. The cast itself is no instruction; loads check their address.
 *
 * Linux has the cast from 6.2 on, and the type from 6.4 on. On older kernels the verifier skips the call, which libbpf
 * could not resolve. To ask for the function itself would fail to load on 6.2 and 6.3. */
#define read_only(pointer)                                                                         \
	(bpf_core_type_exists(struct bpf_iter_num) ?                                               \
		 (typeof(pointer))bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(typeof(*(pointer)))) : \
		 (pointer))

#endif
