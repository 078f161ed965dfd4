package ssd

import (
	"fmt"
	"math/bits"
	"slices"

	"farflash/internal/divide"
	"farflash/model/ssd/nand"
)

// pools says which planes are written as one. A pool is what the translation layer knows: its block b is block b of
// each of its planes, a superblock, whose successive pages go round the planes. With one plane a pool the translation
// layer's numbers are the flash's.
type pools struct {
	size    int     // planes of each
	of      []int32 // by plane
	apart   int     // planes that follow each other by number and are a reclaim group
	members []int32 // by pool, then in the order in which they are written
	round   divide.By
	perPage divide.By // by the grains of a page
	grains  int
	flash   nand.Geometry // as the translation layer sees it: a plane a pool, its pages the map's grains
}

// mostSuperblock is how many pages a superblock has at most: what ftl can number.
const mostSuperblock = 1 << 24

// planePools divides the planes into pools. Under dynamic allocation those of a reclaim group that the same
// namespaces use are together; where there are several such sets, all are divided into pools of one size.
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

// planeSets lists the planes of a reclaim group that the same namespaces use, in the order in which they are written:
// the planes of a die, then dies of other channels. So many planes are a group.
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

// group is the reclaim group that a pool is part of.
func (p *pools) group(pool int32) int { return int(p.members[int(pool)*p.size]) / p.apart }

// give tells the namespaces which pools they write to.
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

// count is how many pools there are.
func (p *pools) count() int { return len(p.members) / p.size }

// planes are a pool's, in the order in which they are written.
func (p *pools) planes(pool int) []int32 { return p.members[pool*p.size : (pool+1)*p.size] }

// at is the plane of a pool's page, as the translation layer numbers them, and the number within its block there of
// the page of flash that it is part of.
func (p *pools) at(pool, inBlock int) (plane int32, page uint16) {
	if p.grains > 1 || p.size > 1 {
		return p.atGrain(pool, inBlock)
	}
	return p.members[pool], uint16(inBlock)
}

// atGrain is at where a pool has several planes, or a page several grains.
func (p *pools) atGrain(pool, inBlock int) (plane int32, page uint16) {
	row, k := p.round.Split(p.perPage.Of(uint64(inBlock)))
	return p.members[pool*p.size+int(k)], uint16(row)
}
