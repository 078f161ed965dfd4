package reproduce

import (
	"fmt"

	"farflash/scenario/shape"
)

// Load returns the changes that turn the preset src-system into the load of a figure: src-fig2, src-fig2-congested,
// src-fig9, or src-fig9-long with its random demands, for tables that examine one more closely than the paper does.
func Load(name string) ([]shape.Change, error) {
	switch name {
	case "src-fig2":
		return fig2Load, nil
	case "src-fig2-congested":
		return with(fig2Load, fig2Others), nil
	case "src-fig9":
		return fig9Load, nil
	case "src-fig9-long":
		return longLoad(1), nil
	}
	return nil, fmt.Errorf(
		"%q is not a load of a figure; use src-fig2, src-fig2-congested, src-fig9 or src-fig9-long", name)
}
