/** Of the metric of reconnections, as Prometheus reads it, what is not zero: `lost resumed 1`. */
export async function reconnectsOf(url: string): Promise<string[]> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const series = /^earshot_model_reconnects_total\{reason="(\w+)",outcome="(\w+)"\} (\d+)$/gm;
  return [...text.matchAll(series)]
    .filter(([, , , count]) => count !== '0')
    .map(([, reason, outcome, count]) => `${reason} ${outcome} ${count}`);
}
