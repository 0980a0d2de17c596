/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pointers that take the verifier less time. */
#ifndef BOWWAVE_POINTER_H
#define BOWWAVE_POINTER_H

extern void *bpf_rdonly_cast(const void *pointer, __u32 type) __ksym __weak;

/* A pointer to the same object that the program can only read through. The verifier trusts the pointers that a
 * tracepoint passes. For each pointer that a program loads through one, on each path, it then compares the names of
 * all types of the kernel, which takes about 2 ms. The programs pass no pointer on to the kernel, so they need no
 * trust. The cast costs nothing when a program runs. Kernels before 6.2 do not have it, and do not compare. */
#define read_only(pointer)                                                                         \
	(bpf_ksym_exists(bpf_rdonly_cast) ?                                                        \
		 (typeof(pointer))bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(typeof(*(pointer)))) : \
		 (pointer))

#endif
