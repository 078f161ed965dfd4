package ssd

import (
	"fmt"
	"math/bits"
	"slices"

	"farflash/internal/divide"
	"farflash/model/ssd/nand"
)

// pools groups planes that are written as one. A pool is one of the translation layer's: its block b consists of block
// b of each of its planes, a superblock, and successive pages go round the planes. With one plane a pool, the
// translation layer's numbers are those of the flash.
type pools struct {
	size    int     // planes of a pool
	of      []int32 // by plane
	apart   int     // consecutive planes that form a reclaim group
	members []int32 // planes by pool, in the order in which they are written
	round   divide.By
	perPage divide.By // divides by grains
	grains  int
	flash   nand.Geometry // as the translation layer sees it: each pool is a plane, and pages are grains
}

// mostSuperblock is the largest number of pages in a superblock that ftl can number.
const mostSuperblock = 1 << 24

// planePools divides the planes into pools. Under dynamic allocation, the planes of a reclaim group that are used by
// the same namespaces form a set; if there are several sets, all are divided into pools of one common size.
func (c *Config) planePools(ns []namespace) pools {
	g := c.Geometry
	p := pools{size: 1, of: make([]int32, g.Planes()), apart: g.Planes() / c.Groups(), grains: c.grainsPerPage()}
	p.perPage = divide.New(uint64(p.grains))
	if c.Mapping.Allocation == AllocateDynamic {
		sets := c.planeSets(ns, p.apart)
		common := 0
		for _, s := range sets {
			common = gcd(len(s), common)
		}
		p.size = common
		for common%p.size != 0 || p.size > 1 && !p.canBe(g) {
			p.size--
		}
		p.members = slices.Concat(sets...)
	} else {
		for plane := range g.Planes() {
			p.members = append(p.members, int32(plane))
		}
	}
	for i, plane := range p.members {
		p.of[plane] = int32(i / p.size)
	}
	p.round = divide.New(uint64(p.size))
	p.flash = nand.Geometry{
		Channels: g.Planes() / p.size, ChipsPerChannel: 1, DiesPerChip: 1, PlanesPerDie: 1,
		BlocksPerPlane: g.BlocksPerPlane, PagesPerBlock: g.PagesPerBlock * p.size * p.grains, PageSize: c.grainSize(),
	}
	return p
}

// canBe reports whether the translation layer can number pools of this size.
func (p *pools) canBe(g nand.Geometry) bool {
	block := p.size * g.PagesPerBlock * p.grains
	hi, lo := bits.Mul64(uint64(g.Pages())*uint64(p.grains), uint64(g.BlocksPerPlane)*uint64(block))
	return block <= mostSuperblock && hi == 0 && lo>>63 == 0
}

// planeSets lists the planes of each reclaim group that are used by the same namespaces, in the order in which they are
// written: the planes of a die, then dies on other channels. group is the number of planes in a group.
func (c *Config) planeSets(ns []namespace, group int) [][]int32 {
	g := c.Geometry
	users := make([]string, g.Planes())
	for p := range users {
		users[p] = fmt.Sprintf("%d: ", p/group)
	}
	for i := range ns {
		for _, p := range ns[i].planeOf {
			users[p] += fmt.Sprintf("%d ", i)
		}
	}
	var names []string
	var sets [][]int32
	for die := range g.DiesPerChip {
		for chip := range g.ChipsPerChannel {
			for channel := range g.Channels {
				for k := range g.PlanesPerDie {
					plane := g.Plane(channel, chip, die, k)
					at := slices.Index(names, users[plane])
					if at < 0 {
						at = len(names)
						names, sets = append(names, users[plane]), append(sets, nil)
					}
					sets[at] = append(sets[at], int32(plane))
				}
			}
		}
	}
	return sets
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// group returns the reclaim group that a pool belongs to.
func (p *pools) group(pool int32) int { return int(p.members[int(pool)*p.size]) / p.apart }

// give sets the pools that the namespaces write to.
func (p *pools) give(ns []namespace) {
	for i := range ns {
		n := &ns[i]
		n.poolOf = nil
		seen := make([]bool, len(p.of))
		for _, plane := range n.planeOf {
			if k := p.of[plane]; !seen[k] {
				seen[k] = true
				n.poolOf = append(n.poolOf, k)
			}
		}
		slices.SortStableFunc(n.poolOf, func(a, b int32) int { return p.group(a) - p.group(b) })
		n.readPoolOf = nil
		for _, plane := range n.readPlaneOf {
			n.readPoolOf = append(n.readPoolOf, p.of[plane])
		}
		n.poolTurn = divide.New(uint64(len(n.poolOf)))
	}
}

// count returns the number of pools.
func (p *pools) count() int { return len(p.members) / p.size }

// planes returns a pool's planes, in the order in which they are written.
func (p *pools) planes(pool int) []int32 { return p.members[pool*p.size : (pool+1)*p.size] }

// at returns the plane of a pool's page, given by its number in the translation layer, and the index within the block
// of the page of flash that contains it.
func (p *pools) at(pool, inBlock int) (plane int32, page uint16) {
	if p.grains > 1 || p.size > 1 {
		return p.atGrain(pool, inBlock)
	}
	return p.members[pool], uint16(inBlock)
}

// atGrain is at for pools of several planes, or pages of several grains.
func (p *pools) atGrain(pool, inBlock int) (plane int32, page uint16) {
	row, k := p.round.Split(p.perPage.Of(uint64(inBlock)))
	return p.members[pool*p.size+int(k)], uint16(row)
}
