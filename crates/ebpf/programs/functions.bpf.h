/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For kernels without the tracepoints of the page cache: hooks the functions that would call them.
 *
 *   page_cache_sync_ra, page_cache_async_ra   (6.18)   the functions of these names
 *   mm_filemap_get_pages                      (6.12)   filemap_read, filemap_splice_read
 *   mm_filemap_fault, mm_filemap_map_pages    (6.12)   filemap_fault, filemap_map_pages
 *
 * A read is seen once, when it is done. If it were seen when it begins, the pages that it brings into the cache would
 * count as used before they were brought.
 */
#ifndef BOWWAVE_FUNCTIONS_H
#define BOWWAVE_FUNCTIONS_H

/* Looks at a long read in parts of 2 MiB, which take_mark covers, up to 1 GiB. */
#define PART_PAGES (CHUNKS_PER_READ << CHUNK_SHIFT)
#define MOST_PARTS 512

SEC("fentry/page_cache_sync_ra")
int BPF_PROG(on_sync_ra_call, struct readahead_control *control, unsigned long request)
{
	return on_read_ahead(control->mapping->host, control->_index, control->ra, request, EVENT_MISS);
}

SEC("fentry/page_cache_async_ra")
int BPF_PROG(on_async_ra_call, struct readahead_control *control, struct folio *folio, unsigned long request)
{
	return on_read_ahead(control->mapping->host, control->_index, control->ra, request, EVENT_KERNEL_MARK);
}

struct long_read {
	struct address_space *mapping;
	u64 first;
	u64 last;
};

static long see_part(u64 number, void *data)
{
	struct long_read *read = data;
	u64 last = read->first + PART_PAGES - 1;

	on_access(read->mapping, read->first, last < read->last ? last : read->last, 0, true);
	read->first += PART_PAGES;
	return 0;
}

/* A program has read `bytes`, up to file position `end`. */
static __always_inline int on_read_done(struct file *file, s64 end, s64 bytes)
{
	struct long_read read;
	u64 parts;

	if (bytes <= 0 || end < bytes)
		return 0;
	read.mapping = file->f_mapping;
	read.first = (u64)(end - bytes) >> PAGE_SHIFT;
	read.last = (u64)(end - 1) >> PAGE_SHIFT;
	parts = (read.last - read.first) / PART_PAGES + 1;
	bpf_loop(parts < MOST_PARTS ? parts : MOST_PARTS, see_part, &read, 0);
	return 0;
}

SEC("fexit/filemap_read")
int BPF_PROG(on_read, struct kiocb *iocb, struct iov_iter *to, s64 before, s64 read)
{
	return on_read_done(iocb->ki_filp, iocb->ki_pos, read - before);
}

SEC("fexit/filemap_splice_read")
int BPF_PROG(on_splice, struct file *file, s64 *position, struct pipe_inode_info *pipe, u64 bytes, u32 flags,
	     s64 read)
{
	s64 end = 0;

	bpf_probe_read_kernel(&end, sizeof(end), position);
	return on_read_done(file, end, read);
}

SEC("fentry/filemap_fault")
int BPF_PROG(on_fault_call, struct vm_fault *fault)
{
	return on_page_fault(fault->vma->vm_file->f_mapping, fault->pgoff);
}

SEC("fentry/filemap_map_pages")
int BPF_PROG(on_map_pages_call, struct vm_fault *fault, unsigned long first, unsigned long last)
{
	return on_access(fault->vma->vm_file->f_mapping, first, last, FLAG_MMAP, false);
}

#endif
