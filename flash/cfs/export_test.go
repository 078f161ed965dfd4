package cfs

import (
	"farflash/flash/ctl/media"
)

// MakeRight recomputes the checksums of a metadata page: of inodes, of a directory, or of the superblock.
func MakeRight(page []byte, u media.UUID, kind uint8) {
	if kind > 0 {
		sealPage(page, u.Seed())
		return
	}
	for i := range uint32(inodesPerPage) {
		b := page[i*inodeSize:][:inodeSize]
		if [inodeSize]byte(b) != [inodeSize]byte{} {
			le.PutUint32(b[28:], (&inode{}).sum(b, u.Seed(), i))
		}
	}
}
