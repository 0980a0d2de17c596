/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks into the page cache. */
#ifndef BOWWAVE_PAGE_CACHE_H
#define BOWWAVE_PAGE_CACHE_H

#define PAGE_SHIFT 12
#define S_IFMT 0170000
#define S_IFREG 0100000
/* Low bits of entries in the page cache's tree. */
#define NODE_TAG 2
#define EVICTED_TAG 1
/* Six bits of a page index each: enough for the largest file. */
#define TREE_LEVELS 10

static __always_inline bool is_node(u64 entry)
{
	return (entry & 3) == NODE_TAG && entry > 4096;
}

/* Slots of a node. */
static __always_inline u64 slots(void)
{
	return bpf_core_field_size(struct xa_node, slots) / sizeof(void *);
}

/* On the way from the root of the page cache's tree to the entry of a page. */
struct descent {
	u64 index;
	u64 entry;
};

/* Goes one level down. */
static long descend(u64 level, void *data)
{
	const u64 first = bpf_core_field_offset(struct xa_node, slots);
	struct descent *descent = data;
	u64 node = descent->entry - NODE_TAG, entry = 0, at;
	u8 shift = BPF_CORE_READ((struct xa_node *)node, shift);

	at = (descent->index >> shift) & (slots() - 1);
	bpf_probe_read_kernel(&entry, sizeof(entry), (void *)(node + first + at * sizeof(entry)));
	/* An entry of several slots is in the first one; the others hold that one's number. */
	if ((entry & 3) == NODE_TAG && entry >> 2 < slots())
		bpf_probe_read_kernel(&entry, sizeof(entry), (void *)(node + first + (entry >> 2) * sizeof(entry)));
	descent->entry = entry;
	return !is_node(entry);
}

/* The entry of a page in the page cache's tree: a folio, 0, or with EVICTED_TAG the shadow entry of an evicted page.
 * The tree may change meanwhile. At worst that gives a wrong answer, as every memory access is checked. */
static __always_inline u64 page_cache_entry(struct address_space *mapping, u64 index)
{
	u64 root = (u64)BPF_CORE_READ(mapping, i_pages.xa_head);
	struct descent descent = { .index = index, .entry = root };
	u8 shift;

	/* A tree with page 0 only has no node. */
	if (!is_node(root))
		return index ? 0 : root;
	shift = BPF_CORE_READ((struct xa_node *)(root - NODE_TAG), shift);
	if (index >> shift >= slots())
		return 0;
	bpf_loop(TREE_LEVELS, descend, &descent, 0);
	return descent.entry;
}

static __always_inline u64 pages_of(struct folio *folio)
{
	struct folio___before_6_18 *before = (void *)folio;
	u64 flags = bpf_core_field_exists(folio->flags.f) ? folio->flags.f : before->flags;

	if (!(flags & (1ULL << bpf_core_enum_value(enum pageflags, PG_head))))
		return 1;
	return bpf_core_field_exists(before->_folio_nr_pages) ? before->_folio_nr_pages : folio->_nr_pages;
}

#endif
