package monitoring

// docsURL is where runbook links point.
const docsURL = "https://github.com/fairlead-io/fairlead/blob/main/docs/"

// Rules is the PrometheusRule of every installation: NFS alerts without NFS services never fire.
func Rules(namespace string) any {
	return ruleOf("fairlead", namespace, group("fairlead", Alerts()), group("fairlead-nfs", NFSAlerts()))
}

// FencingRules is the PrometheusRule of installations with fencing.
func FencingRules(namespace string) any {
	return ruleOf("fairlead-fencing", namespace, group("fairlead-fencing", FencingAlerts()))
}

func ruleOf(name, namespace string, groups ...object) object {
	return object{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": object{"name": name, "namespace": namespace},
		"spec": object{"groups": groups},
	}
}

func group(name string, alerts []Alert) object {
	var rules []object
	for _, a := range alerts {
		rule := object{
			"alert": a.Name, "expr": a.Expr, "labels": object{"severity": a.Severity},
			"annotations": object{"summary": a.Summary, "runbook_url": docsURL + a.Runbook},
		}
		if a.For != "" {
			rule["for"] = a.For
		}
		rules = append(rules, rule)
	}
	return object{"name": name, "rules": rules}
}
