/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files: which ones matter, their sizes and paths. */
#ifndef BOWWAVE_FILE_H
#define BOWWAVE_FILE_H

#define TMPFS_MAGIC 0x01021994
#define RAMFS_MAGIC 0x858458f6
#define HUGETLBFS_MAGIC 0x958458f6
#define OVERLAYFS_MAGIC 0x794c7630

/* Whether files of such a file system have no device to wait for. */
static __always_inline bool is_in_memory(u64 magic)
{
	return magic == TMPFS_MAGIC || magic == RAMFS_MAGIC || magic == HUGETLBFS_MAGIC;
}

/* Whether this is a regular file that is not in memory only. */
static __always_inline bool is_on_device(struct inode *inode)
{
	/* Inode 0 stands for others. */
	if (!inode || !inode->i_ino || (inode->i_mode & S_IFMT) != S_IFREG)
		return false;
	return !is_in_memory(inode->i_sb->s_magic);
}

/* The file's size in pages. */
static __always_inline u64 end_of(struct inode *inode)
{
	return ((u64)inode->i_size + (1 << PAGE_SHIFT) - 1) >> PAGE_SHIFT;
}

/* The folio's pages within the file; false if there are none. Pages behind the end are a writer's. */
static __always_inline bool pages_within(struct inode *inode, struct folio *folio, u64 *first, u64 *end)
{
	u64 file_end = end_of(inode);

	*first = folio->index;
	*end = *first + pages_of(folio);
	if (*end > file_end)
		*end = file_end;
	return *first < *end;
}

/* Writes up to `most` components of the file's path within its file system, the last one first. Returns how many.
 * `most` has to be a constant. */
static __always_inline u32 path_of(struct inode *inode, struct component *to, int most, bool *is_whole)
{
	struct dentry *dentry = 0, *parent;
	struct hlist_node *alias;
	u32 components = 0;

	*is_whole = false;
	if (!bpf_core_field_exists(dentry->d_u.d_alias))
		return 0;
	alias = BPF_CORE_READ(inode, i_dentry.first);
	if (!alias)
		return 0;
	dentry = (void *)alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
	for (int i = 0; i < most; i++) {
		parent = BPF_CORE_READ(dentry, d_parent);
		if (!parent || parent == dentry) {
			*is_whole = true;
			break;
		}
		if (bpf_probe_read_kernel_str(&to[i], sizeof(to[i]), BPF_CORE_READ(dentry, d_name.name)) < 0)
			to[i].text[0] = 0;
		components = i + 1;
		dentry = parent;
	}
	/* The loop ends before it sees that the last component is the first of the path. */
	if (BPF_CORE_READ(dentry, d_parent) == dentry)
		*is_whole = true;
	return components;
}

#endif
