package monitoring

// docsURL is where runbook links point.
const docsURL = "https://github.com/fairlead-io/fairlead/blob/main/docs/"

// Rule is the part of prometheus-operator's PrometheusRule that alerts need.
type Rule struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       ruleSpec `json:"spec"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type ruleSpec struct {
	Groups []ruleGroup `json:"groups"`
}

type ruleGroup struct {
	Name  string      `json:"name"`
	Rules []alertRule `json:"rules"`
}

type alertRule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Rules is the PrometheusRule of every installation: NFS alerts without NFS services never fire.
func Rules(namespace string) Rule {
	return ruleOf("fairlead", namespace, group("fairlead", Alerts()), group("fairlead-nfs", NFSAlerts()))
}

// FencingRules is the PrometheusRule of installations with fencing.
func FencingRules(namespace string) Rule {
	return ruleOf("fairlead-fencing", namespace, group("fairlead-fencing", FencingAlerts()))
}

func ruleOf(name, namespace string, groups ...ruleGroup) Rule {
	return Rule{"monitoring.coreos.com/v1", "PrometheusRule", metadata{name, namespace}, ruleSpec{groups}}
}

func group(name string, alerts []Alert) ruleGroup {
	g := ruleGroup{Name: name}
	for _, a := range alerts {
		g.Rules = append(g.Rules, alertRule{
			Alert: a.Name, Expr: a.Expr, For: a.For, Labels: map[string]string{"severity": a.Severity},
			Annotations: map[string]string{"summary": a.Summary, "runbook_url": docsURL + a.Runbook},
		})
	}
	return g
}
