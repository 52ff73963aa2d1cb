package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/cli/status"
	"github.com/fairlead-io/fairlead/internal/datapath"
)

// picture is the data path of a volume: workloads, clients on their nodes, the Service, the server.
type picture struct {
	Width, Height int
	Boxes         []box
	Lines         []line
	Networks      []legend
	// Description of the picture in words, for screen readers.
	Description string
}

// box is one object. Its texts are lines of at most fit characters.
type box struct {
	X, Y, Width, Height int
	Kind                string
	Texts               []text
	State               datapath.State
	// Color is the number of the network; -1 for objects without one.
	Color int
}

// Right is where a text ends that is aligned at the right.
func (b box) Right() int { return b.Width - 14 }

// Inner is the height between the round corners.
func (b box) Inner() int { return b.Height - 12 }

// text is a line in a box. Full is the whole text if Short is not.
type text struct {
	Y           int
	Short, Full string
	Strong      bool
}

// line connects two boxes, in the color of the network that the traffic takes.
type line struct {
	Path  string
	Color int
}

type legend struct {
	Color int
	Name  string
}

const (
	boxWidth, gap, margin  = 226, 62, 2
	lineHeight, boxPadding = 20, 12
	between                = 18
	// fit is the number of characters that fit into a box.
	fit = 25
	// mostClients and mostTexts are shown; the table below the picture has all.
	mostClients, mostTexts = 8, 6
	// colors are the networks with a color of their own; 0 is the cluster network.
	colors = 5
)

// draw lays the path out in columns.
func draw(v status.VolumeView) picture {
	d := drawing{colors: map[string]int{}}
	workloads := d.column(0, []box{d.box("Workloads", -1, "", listOf(v.Workloads, "no workload"), 0)})
	var clients, middle, servers []box
	var service []string
	serviceState, serviceColor := datapath.OK, -1
	for _, h := range v.Hops {
		switch h.Kind {
		case datapath.Client:
			clients = append(clients, d.hop("Client on the node", h, h.Node))
		case datapath.Server:
			servers = append(servers, d.hop("Server", h, h.Name, "on "+orNone(h.Node)))
		default:
			service = append(service, serviceTexts(h)...)
			serviceState = datapath.Worse(serviceState, h.State)
			if h.Kind == datapath.Service {
				serviceColor = d.color(h.Network)
			}
		}
	}
	if hidden := len(clients) - mostClients; hidden > 0 {
		// The worst stay.
		slices.SortStableFunc(clients, func(a, b box) int { return rank(b.State) - rank(a.State) })
		clients = append(clients[:mostClients], d.box("More clients", -1, "", []string{fmt.Sprintf("and %d more nodes", hidden)}, 0))
	}
	if len(service) > 0 {
		middle = []box{d.box("Service", serviceColor, serviceState, service, 1)}
	}
	columns := [][]box{workloads, d.column(1, clients), d.column(2, middle), d.column(3, servers)}
	d.place(columns)
	d.Description = describe(v)
	return d.picture
}

func serviceTexts(h status.HopView) []string {
	switch h.Kind {
	case datapath.Service:
		return append([]string{cmp.Or(h.Name, "none yet")}, h.Addresses...)
	case datapath.Addresses:
		if len(h.Addresses) == 0 {
			return []string{"no published address"}
		}
		return h.Addresses
	default:
		return nil // the endpoint is the name of the Service, as clients have it
	}
}

type drawing struct {
	picture
	colors map[string]int
}

// color of a network. The networks beyond the colors share the last one.
func (d *drawing) color(network string) int {
	name := status.NetworkName(network)
	if c, known := d.colors[name]; known {
		return c
	}
	c := 0
	if network != "" {
		c = 1
		for _, n := range d.Networks {
			c = max(c, n.Color+1)
		}
		c = min(c, colors-1)
	}
	d.colors[name] = c
	d.Networks = append(d.Networks, legend{c, name})
	return c
}

func (d *drawing) hop(kind string, h status.HopView, texts ...string) box {
	texts = append(texts, h.Addresses...)
	return d.box(kind, d.color(h.Network), h.State, append(texts, status.NetworkName(h.Network)), 1)
}

// box with texts, of which the first ones are strong.
func (d *drawing) box(kind string, color int, state datapath.State, texts []string, strong int) box {
	b := box{Width: boxWidth, Kind: kind, State: state, Color: color}
	if len(texts) > mostTexts {
		texts = append(slices.Clone(texts[:mostTexts-1]), fmt.Sprintf("and %d more", len(texts)-mostTexts+1))
	}
	y := boxPadding + lineHeight
	for i, t := range texts {
		y += lineHeight
		b.Texts = append(b.Texts, text{Y: y - 6, Short: shortened(t), Full: t, Strong: i < strong})
	}
	b.Height = y + boxPadding
	return b
}

// column stacks boxes.
func (d *drawing) column(number int, boxes []box) []box {
	y := margin
	for i := range boxes {
		boxes[i].X, boxes[i].Y = margin+number*(boxWidth+gap), y
		y += boxes[i].Height + between
	}
	return boxes
}

// place centers the columns, and connects each box with the boxes of the next column that has any.
func (d *drawing) place(columns [][]box) {
	columns = slices.DeleteFunc(columns, func(c []box) bool { return len(c) == 0 })
	tallest := 0
	for _, c := range columns {
		tallest = max(tallest, bottom(c))
	}
	for _, c := range columns {
		down := (tallest - bottom(c)) / 2
		for i := range c {
			c[i].Y += down
		}
	}
	for i, c := range columns {
		d.Boxes = append(d.Boxes, c...)
		if i+1 == len(columns) {
			break
		}
		for _, from := range c {
			for _, to := range columns[i+1] {
				d.connect(from, to)
			}
		}
	}
	last := columns[len(columns)-1][0]
	d.Width, d.Height = last.X+boxWidth+margin, tallest+margin
}

func bottom(column []box) int {
	last := column[len(column)-1]
	return last.Y + last.Height
}

// connect draws a line in the color of the network that the sender uses.
func (d *drawing) connect(from, to box) {
	x, y, u, v := from.X+from.Width, from.Y+from.Height/2, to.X, to.Y+to.Height/2
	middle := (x + u) / 2
	d.Lines = append(d.Lines, line{fmt.Sprintf("M%d %d C%d %d %d %d %d %d", x, y, middle, y, middle, v, u-6, v), from.Color})
}

func describe(v status.VolumeView) string {
	parts := []string{"Workloads: " + strings.Join(listOf(v.Workloads, "none"), ", ")}
	for _, h := range v.Hops {
		part := string(h.Kind) + " " + h.Name
		if h.Node != "" {
			part += " on node " + h.Node
		}
		if h.Kind != datapath.Endpoint {
			part += ", " + status.NetworkName(h.Network)
		}
		parts = append(parts, part+": "+string(h.State))
	}
	return strings.Join(parts, "; ")
}

// shortened keeps both ends, since names often differ at the end.
func shortened(name string) string {
	runes := []rune(name)
	if len(runes) <= fit {
		return name
	}
	half := (fit - 1) / 2
	return string(runes[:half]) + "…" + string(runes[len(runes)-half:])
}

func listOf(list []string, none string) []string {
	if len(list) == 0 {
		return []string{none}
	}
	return list
}

func orNone(node string) string {
	if node == "" {
		return "no node"
	}
	return "node " + node
}
