package chap

import (
	"fmt"
	"io"
	"math/big"
	"sync"
)

// Group is a Diffie-Hellman group, by its identifier in messages: none, or one of RFC 7919.
type Group uint8

// The groups. With Null, no secret is agreed on, and the keys alone protect the proofs.
const (
	Null Group = iota
	FFDHE2048
	FFDHE3072
	FFDHE4096
	FFDHE6144
	FFDHE8192
	groups
)

// parameters are the length in bits of each group's prime, and the X of its definition (RFC 7919, appendix A).
var parameters = [groups]struct {
	bits uint
	x    int64
}{FFDHE2048: {2048, 560316}, FFDHE3072: {3072, 2625351}, FFDHE4096: {4096, 5736041}, FFDHE6144: {6144, 15705020},
	FFDHE8192: {8192, 10965728}}

var primes [groups]struct {
	once sync.Once
	p    *big.Int
}

// prime computes the group's prime, 2^b - 2^(b-64) + (floor(2^(b-130) e) + X) 2^64 - 1, which has no room for a hidden
// weakness, nor for a mistyped digit.
func (g Group) prime() *big.Int {
	s := &primes[g]
	s.once.Do(func() {
		one := big.NewInt(1)
		b := parameters[g].bits
		p := new(big.Int).Add(euler(b-130), big.NewInt(parameters[g].x))
		p.Lsh(p, 64)
		p.Sub(p, one)
		p.Add(p, new(big.Int).Lsh(one, b))
		s.p = p.Sub(p, new(big.Int).Lsh(one, b-64))
	})
	return s.p
}

// euler returns floor(2^n e), from the sum of 1/k!.
func euler(n uint) *big.Int {
	const guard = 64
	term := new(big.Int).Lsh(big.NewInt(1), n+guard)
	sum := new(big.Int)
	for k := int64(1); term.Sign() > 0; k++ {
		sum.Add(sum, term)
		term.Quo(term, big.NewInt(k))
	}
	return sum.Rsh(sum, guard)
}

// size is the length in bytes of a public value.
func (g Group) size() int { return int(parameters[g].bits / 8) }

// exponent is a secret exponent. Arithmetic does not take constant time, so it must be used for one exchange only.
type exponent struct {
	group Group
	x     *big.Int
}

// exponentBytes is twice the strength of the strongest group and more.
const exponentBytes = 64

// newExponent returns a random exponent; nil with Null.
func newExponent(g Group, random io.Reader) (*exponent, error) {
	if g == Null {
		return nil, nil
	}
	b := make([]byte, exponentBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return nil, fmt.Errorf("chap: %w", err)
	}
	b[0] |= 1 << 7 // always of full length
	return &exponent{g, new(big.Int).SetBytes(b)}, nil
}

// public returns the public value; nil without an exponent.
func (e *exponent) public() []byte {
	if e == nil {
		return nil
	}
	return new(big.Int).Exp(big.NewInt(2), e.x, e.group.prime()).FillBytes(make([]byte, e.group.size()))
}

// shared returns the secret that the owner of a public value computes as well. It refuses values by which the other
// side, or one in between, would know the secret.
func (e *exponent) shared(public []byte) ([]byte, bool) {
	if len(public) != e.group.size() {
		return nil, false
	}
	p, y := e.group.prime(), new(big.Int).SetBytes(public)
	last := new(big.Int).Sub(p, big.NewInt(1))
	if y.Cmp(big.NewInt(1)) <= 0 || y.Cmp(last) >= 0 {
		return nil, false
	}
	return y.Exp(y, e.x, p).FillBytes(make([]byte, e.group.size())), true
}
