package placement

import (
	"slices"
	"testing"
)

// TestJumpVectors checks the test values of other implementations of jump hash.
func TestJumpVectors(t *testing.T) {
	for _, c := range []struct {
		key     uint64
		buckets int32
		want    int32
	}{{1, 1, 0}, {42, 57, 43}, {0xdead10cc, 1, 0}, {0xdead10cc, 666, 361}, {256, 1024, 520}} {
		if got := jumpHash(c.key, c.buckets); got != c.want {
			t.Errorf("jumpHash(%d, %d) = %d, want %d", c.key, c.buckets, got, c.want)
		}
	}
}

// TestMaglevVectors checks tables 1 and 2 of the Maglev paper: three backends, seven entries, before and after the
// second one is removed.
func TestMaglevVectors(t *testing.T) {
	if got, want := populate([]int{3, 0, 3}, []int{4, 2, 1}, []float64{1, 1, 1}, 7),
		[]int32{1, 0, 1, 0, 2, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("table %v, the paper has %v", got, want)
	}
	if got, want := populate([]int{3, 3}, []int{4, 1}, []float64{1, 1}, 7),
		[]int32{0, 0, 0, 0, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("table %v, the paper has %v", got, want)
	}
}

// TestStraw2Vectors compares with the results of Ceph's libcrush (github.com/ceph/libcrush, default tunables) for x =
// 0, 1, ..., where target i has weight 1 + i mod 3, domain d is bucket -2-d, and the rule is "take root, chooseleaf
// firstn 3 type domain".
func TestStraw2Vectors(t *testing.T) {
	if h := jenkins3(1, 2, 3); h != 1935332395 {
		t.Errorf("hash of 1, 2, 3 is %d", h)
	}
	minus7 := int32(-7)
	if h := jenkins3(123456, uint32(minus7), 2); h != 2460545930 {
		t.Errorf("hash of 123456, -7, 2 is %d", h)
	}
	for _, c := range []struct {
		domains, size, n int
		want             [][]int32
	}{
		{5, 4, 3, [][]int32{
			{13, 10, 17}, {16, 5, 2}, {8, 13, 4}, {11, 12, 4}, {18, 12, 2}, {11, 5, 16}, {17, 11, 12}, {19, 8, 2},
			{17, 2, 8}, {11, 17, 13}, {19, 10, 4}, {19, 14, 0}, {11, 5, 2}, {2, 6, 11}, {18, 14, 5}, {7, 14, 8},
			{11, 17, 7}, {16, 14, 8}, {4, 8, 2}, {9, 2, 7}, {9, 19, 7}, {3, 5, 17}, {11, 3, 7}, {19, 5, 10},
		}},
		{5, 4, 5, [][]int32{{13, 10, 17, 2, 4}, {16, 5, 2, 10, 14}, {8, 13, 4, 16, 2}, {11, 12, 4, 19, 1},
			{18, 12, 2, 7, 8}, {11, 5, 16, 2, 15}}},
		{100, 90, 3, [][]int32{
			{340, 6323, 4841}, {7873, 2310, 3019}, {2663, 7512, 512}, {5660, 3503, 1109},
			{602, 3034, 6428}, {8524, 4995, 6395}, {5192, 6007, 1958}, {5818, 6801, 8102},
		}},
	} {
		p, err := NewStraw2(crushMap(c.domains, c.size))
		if err != nil {
			t.Fatal(err)
		}
		for x, want := range c.want {
			if got := p.place(uint32(x), c.n, nil); !slices.Equal(got, want) {
				t.Errorf("%d domains of %d, x %d: %v, Ceph says %v", c.domains, c.size, x, got, want)
			}
		}
	}
}

func crushMap(domains, size int) Map {
	m := Uniform(domains * size).Racks(size)
	for i := range m.Weights {
		m.Weights[i] = 1 + float64(i%3)
	}
	return m
}

// TestMulticast checks the paper's own values, section IV.E, and others that follow from the RFCs.
func TestMulticast(t *testing.T) {
	if choose(9, 3) != 84 || choose(9, 2) != 36 || choose(5, 6) != 0 || choose(60, 30) != 118264581564861424 {
		t.Error("binomial coefficients are wrong")
	}
	if n := rulesPerGroup(9, 3); n != 120 {
		t.Errorf("%d rendezvous groups in a negotiating group of 9, the paper has 120", n)
	}
	if n := RulesPerSwitch(900, 9, 3); n != 120*100 {
		t.Errorf("%d rules for 900 targets, the paper has 120 * (900/9)", n)
	}
	// "Beyond 12,000 targets would quickly exceed the table capacity of virtually all switches."
	if n := RulesPerSwitch(11_997, 9, 3); n != 159_960 {
		t.Errorf("%d rules for 11,997 targets", n)
	}
	// Two groups of 9 as one of 18, or shards of a 6+3 code: the table explodes.
	if a, b := rulesPerGroup(18, 3), rulesPerGroup(18, 9); a != 969 || b != 155_363 {
		t.Errorf("groups of 18: %d and %d rules", a, b)
	}
	for _, c := range []struct{ receivers, bits, header int }{{9, 64, 20}, {64, 64, 20}, {65, 128, 28}, {256, 256, 44},
		{4096, 4096, 524}} {
		n, err := BIERBits(c.receivers)
		if err != nil || n != c.bits || int(BIERHeader(n)) != c.header {
			t.Errorf("%d receivers: %d bits, %v, %v", c.receivers, n, BIERHeader(n), err)
		}
	}
	if _, err := BIERBits(4097); err == nil {
		t.Error("a bit string of more than 4096 bits is not refused")
	}
}
