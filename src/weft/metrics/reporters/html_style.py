"""How pages of HTML look: light and dark, on a phone and on a wide screen."""

__all__ = ["STYLE"]

STYLE = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#1c2128;--dim:#626c78;
  --line:#dfe3e8;
--mark:#fff6d6;--good:#1a7f4b;--bad:#c0362c;--c0:#2563b8;--c1:#d9730d;--c2:#1a7f4b;--c3:#8b4fc0;
  --c4:#b8336a}
@media (prefers-color-scheme:dark){:root{--page:#14171b;--card:#1d2127;--text:#e4e8ed;
  --dim:#97a1ad;
--line:#343b44;--mark:#3a3420;--good:#4cc38a;--bad:#ff7b6e;--c0:#6ea8fe;--c1:#ffa657;--c2:#4cc38a;
  --c3:#c297f0;--c4:#ff85b3}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1120px;margin:0 auto;padding:20px 16px 60px}
h1{font-size:24px;line-height:1.25;margin:8px 0;overflow-wrap:anywhere}
h1 span{font-size:13px;font-weight:600;vertical-align:middle;padding:2px 10px;border-radius:99px;
  border:1px solid;white-space:nowrap}
h1 .good{color:var(--good)}h1 .bad{color:var(--bad)}h1 .dim{color:var(--dim)}
h2{font-size:17px;margin:0 0 12px}
header p,.note{color:var(--dim);margin:4px 0;overflow-wrap:anywhere}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px;
  margin:16px 0}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(132px,1fr));gap:14px 20px;
  margin:0}
.cards dt{color:var(--dim);font-size:12.5px}
.cards dd{margin:0;font-size:19px;font-weight:600;font-variant-numeric:tabular-nums;
  overflow-wrap:anywhere}
.curves{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));
  gap:20px 24px}
figure{margin:0;min-width:0}
figcaption{display:flex;flex-wrap:wrap;gap:0 14px;align-items:baseline;margin-bottom:4px}
figcaption b{font-size:14px}
figcaption span{color:var(--dim);font-size:13px;white-space:nowrap}
figcaption i{display:inline-block;width:14px;height:3px;border-radius:2px;margin-right:5px;
  vertical-align:middle;background:currentColor}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--dim);font-size:12px;font-variant-numeric:tabular-nums}
svg .grid{stroke:var(--line);stroke-width:1}
svg path{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
svg circle{fill:currentColor}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}
  .c4{color:var(--c4)}
.wide{overflow-x:auto}
.wide+.wide{margin-top:18px}
table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:left;font-weight:600;color:var(--dim);font-size:12.5px}
th,td{padding:5px 12px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
td{overflow-wrap:anywhere;min-width:70px;white-space:pre-wrap;unicode-bidi:plaintext}
tr:last-child td{border-bottom:0}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;padding-right:20px}
.marked td{background:var(--mark)}
details{margin-top:10px}
summary{cursor:pointer;color:var(--dim)}
.sample{padding:10px 0;border-bottom:1px solid var(--line)}
.sample:last-of-type{border-bottom:0}
.sample p{margin:1px 0;display:grid;grid-template-columns:86px 1fr;gap:10px;white-space:pre-wrap;
  overflow-wrap:anywhere}
.sample p>span{color:var(--dim);font-size:12.5px;padding-top:2px}
.sample p>bdi{min-width:0;unicode-bidi:plaintext}
.sample .answer bdi{font-weight:600}
.sample i{font-weight:400;color:var(--dim)}
.sample .head{display:block;color:var(--dim);font-size:12.5px}
@media (max-width:520px){main{padding:12px 10px 40px}section{padding:12px}
  .sample p{grid-template-columns:1fr;gap:0}
svg text{font-size:15px}.sample p>span{padding-top:4px}.cards dd{font-size:17px}}
@media print{body{background:#fff}section{break-inside:avoid}}
""".strip()
"""The style sheet; no address in it, and no font but those of the reader's machine."""
