package nfs

// Health of a backend, by its probes.
type Health uint8

const (
	// Unknown: not probed yet. New nodes go to healthy backends first.
	Unknown Health = iota
	// Healthy: the last probes succeeded.
	Healthy
	// Failing: the probes fail, but the backend stays in use. Otherwise too many backends
	// would be out at once, which suggests a fault of the prober.
	Failing
	// Down: the probes fail, and the backend is out.
	Down
)

var healthNames = [...]string{"Unknown", "Healthy", "Failing", "Down"}

// String is the name as status shows it.
func (h Health) String() string {
	if int(h) < len(healthNames) {
		return healthNames[h]
	}
	return "Invalid"
}

// ParseHealth reads a name that String returned. Other text is Unknown.
func ParseHealth(text string) Health {
	for h, name := range healthNames {
		if name == text {
			return Health(h)
		}
	}
	return Unknown
}
