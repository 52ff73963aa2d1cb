package longhorn

import "maps"

// Zone are settings of the danger zone (Longhorn's types/setting.go), each with its default and another value.
type Zone map[string][2]string

// but is another zone with more settings, and without some.
func (z Zone) but(more Zone, without ...string) Zone {
	z = maps.Clone(z)
	maps.Copy(z, more)
	for _, name := range without {
		delete(z, name)
	}
	return z
}
