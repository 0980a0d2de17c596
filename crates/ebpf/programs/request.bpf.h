/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What block devices are asked for, by whomever: a part of trace.bpf.c.
 *
 *   the driver gets a request    block_rq_issue -----> noted in `requests`
 *   the driver gives it back     block_rq_requeue ---> forgotten, until it gets it again
 *   it is complete               block_rq_complete --> TRACE_REQUEST --> ring
 */
#ifndef BOWWAVE_REQUEST_H
#define BOWWAVE_REQUEST_H

#include "disk.bpf.h"

/* Many more than disks take at a time. */
#define MOST_REQUESTS 16384

struct issued {
	u64 at_ns;
	u32 dev;
	u32 op;
	u32 bytes;
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_REQUESTS);
	__type(key, u64);
	__type(value, struct issued);
} requests SEC(".maps"); /* address -> what it asks for, since when */

u64 lost_requests;	/* for which the ring or `requests` had no room */

static __always_inline void lose_request(void)
{
	__sync_fetch_and_add(&lost_requests, 1);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *request)
{
	struct gendisk *disk = BPF_CORE_READ(request, q, disk);
	u32 operation = operation_of(request);
	struct issued issued = {};
	u64 key = (u64)request;

	/* It is for the controller of disks. */
	if (!disk)
		return 0;
	issued.at_ns = bpf_ktime_get_ns();
	issued.dev = number_of_disk(disk);
	issued.op = operation == REQ_OP_READ ? ASKS_READ : operation == REQ_OP_WRITE ? ASKS_WRITE : ASKS_OTHER;
	if (issued.op != ASKS_OTHER)
		issued.bytes = BPF_CORE_READ(request, __data_len);
	/* Replaces a request at this address whose end was not seen, such as one before all programs were attached. */
	if (bpf_map_update_elem(&requests, &key, &issued, BPF_ANY))
		lose_request();
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_requeue, struct request *request)
{
	u64 key = (u64)request;

	bpf_map_delete_elem(&requests, &key);
	return 0;
}

static __always_inline int complete(struct request *request, u32 bytes)
{
	u64 key = (u64)request;
	struct issued *issued = bpf_map_lookup_elem(&requests, &key);
	struct trace_request *event;

	/* Otherwise it was issued before recording began. Some requests are completed in parts. */
	if (!issued || bytes < BPF_CORE_READ(request, __data_len))
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		event->kind = TRACE_REQUEST;
		event->dev = issued->dev;
		event->op = issued->op;
		event->bytes = issued->bytes;
		event->at_ns = issued->at_ns;
		event->took_ns = bpf_ktime_get_ns() - issued->at_ns;
		bpf_ringbuf_submit(event, wakeup());
	} else {
		lose_request();
	}
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *request, int error, unsigned int bytes)
{
	return complete(request, bytes);
}

/* Does so if on_complete does not run: the kernel runs no program in an interrupt of itself, and disks complete requests
 * in interrupts. Otherwise there is nothing left to do. */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete_in_interrupt, struct request *request, int error, unsigned int bytes)
{
	return complete(request, bytes);
}

#endif
