package resp

// matches reports whether a key has a pattern of Redis: * is any number of bytes, ? one, [a-c] one of a set and [^a-c]
// one that is not; \ takes the next byte as it is. Its time is at most the product of both lengths.
func matches(pattern, key []byte) bool {
	p, k := 0, 0
	star, from := -1, 0 // where to begin again: the pattern after the last *, and the key one byte on
	for k < len(key) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, from = p, k
			continue
		}
		if p < len(pattern) {
			if ok, n := one(pattern[p:], key[k]); ok {
				p += n
				k++
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		p, k = star, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// one reports whether a byte is what a pattern begins with, and the length of that.
func one(pattern []byte, c byte) (ok bool, n int) {
	switch {
	case pattern[0] == '?':
		return true, 1
	case pattern[0] == '\\' && len(pattern) > 1:
		return pattern[1] == c, 2
	case pattern[0] != '[':
		return pattern[0] == c, 1
	}
	n = 1
	not := n < len(pattern) && pattern[n] == '^'
	if not {
		n++
	}
	for ; n < len(pattern) && pattern[n] != ']'; n++ {
		if pattern[n] == '\\' && n+1 < len(pattern) {
			n++
			ok = ok || pattern[n] == c
			continue
		}
		low, high := pattern[n], pattern[n]
		if n+2 < len(pattern) && pattern[n+1] == '-' {
			n += 2
			high = pattern[n]
		}
		ok = ok || min(low, high) <= c && c <= max(low, high)
	}
	return ok != not, min(n+1, len(pattern)) // a set without an end has the rest of the pattern
}
