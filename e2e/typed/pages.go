package typed

// Page is typed on a cluster of make up.
type Page struct {
	// Name below the root of the checkout.
	Name string
	// Before is typed first: what the page takes for granted, or what the page before has left.
	Before string
}

const (
	defaultNetwork = `kubectl -n longhorn-system patch settings.longhorn.io storage-network-for-rwx-volume-enabled --type merge -p '{"value":"false"}' >/dev/null
kubectl -n longhorn-system patch settings.longhorn.io storage-network --type merge -p '{"value":""}' >/dev/null
until [ -z "$(kubectl -n longhorn-system get settings.fairlead.io -o jsonpath='{.items[?(@.status.applied==false)].metadata.name}')" ]; do sleep 0.2; done`
	noWorkloads = `kubectl scale statefulset/web statefulset/db --replicas=0; kubectl -n team-x scale deployment/web --replicas=0`
)

// Longhorn lists the pages for make up, in the order in which they are typed.
var Longhorn = []Page{
	{Name: "README.md"},
	{Name: "docs/start.md", Before: defaultNetwork},
	{Name: "docs/reference/rest.md"},
	{Name: "docs/operations.md"},
	{Name: "docs/volume-networks.md"},
	{Name: "docs/review.md"},
	{Name: "docs/settings.md", Before: noWorkloads},
	{Name: "docs/rwx-network.md"},
	{Name: "docs/trouble.md"},
	{Name: "docs/remove.md", Before: `kubectl -n fairlead-system scale deployment/fairlead-controller --replicas=2
sed 's/^    longhorn:$/&\n      duties: {endpoints: "off"}/' docs/examples/configuration-volume-networks.yaml | kubectl apply --server-side --force-conflicts -f -`},
}

// Fencing lists the pages for make up FENCING=1.
var Fencing = []Page{
	{Name: "docs/fencing-setup.md", Before: `export KUBE_EDITOR="sed -i 's/{name: rook-ceph}/{name: rook-ceph, mode: \"off\"}/'"`},
}

// Nodes lists the pages that are typed on real nodes, in the order in which they are typed.
var Nodes = []Page{
	{Name: "docs/install.md"},
	{Name: "docs/upgrade.md"},
	{Name: "docs/remove.md", Before: `kubectl -n fairlead-system get configmap fairlead -o yaml |
  sed 's/longhorn: {}/longhorn: {duties: {endpoints: "off"}}/' | kubectl replace -f -`},
}
