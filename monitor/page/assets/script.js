// The page works without this script, which makes it live: it fetches the part that changes every
// two seconds, moves the bars in between, and searches while the viewer types.
'use strict';
(() => {
  const every = 2000, everyAfterFailure = 10000;
  const live = document.getElementById('live');
  const state = document.getElementById('state');
  const pause = document.getElementById('pause');
  const form = document.getElementById('search'); // null on the page of one lock
  const help = document.getElementById('help'), helpButton = document.getElementById('help-button');
  let paused = false, timer = 0, received = performance.now(), asked = null;

  const set = (text, kind) => {
    if (state.textContent !== text) state.textContent = text;
    state.className = 'dot ' + kind;
  };

  // morph makes a node like another one, and leaves alone what is the same: focus, selection and
  // scroll positions stay. Children with a data-key are recognised wherever they stand.
  function morph(from, to) {
    if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
      from.replaceWith(to);
      return;
    }
    if (from.nodeType !== Node.ELEMENT_NODE) {
      if (from.data !== to.data) from.data = to.data;
      return;
    }
    for (const { name } of [...from.attributes]) if (name !== 'open' && !to.hasAttribute(name)) from.removeAttribute(name);
    for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    const keyed = new Map();
    for (const child of from.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
    const wanted = [...to.childNodes];
    const keys = new Set(wanted.map((child) => child.dataset && child.dataset.key));
    wanted.forEach((child, i) => {
      const key = child.dataset && child.dataset.key;
      let at = from.childNodes[i];
      while (at && at.dataset && at.dataset.key && !keys.has(at.dataset.key)) {
        at.remove();
        at = from.childNodes[i];
      }
      const known = key && keyed.get(key);
      if (known) {
        if (known !== at) from.insertBefore(known, at || null);
        morph(known, child);
      } else if (!at || (key || (at.dataset && at.dataset.key))) {
        from.insertBefore(child, at || null);
      } else {
        morph(at, child);
      }
    });
    while (from.childNodes.length > wanted.length) from.lastChild.remove();
  }

  // duration has the form of the function of that name in Go.
  function duration(s) {
    if (s < 0) return '0 s';
    if (s < 9.95) return s.toFixed(1) + ' s';
    s = Math.floor(s);
    const two = (n) => String(n).padStart(2, '0');
    if (s < 60) return s + ' s';
    if (s < 3600) return Math.floor(s / 60) + ' min ' + two(s % 60) + ' s';
    if (s < 48 * 3600) return Math.floor(s / 3600) + ' h ' + two(Math.floor(s / 60) % 60) + ' min';
    return Math.floor(s / 86400) + ' d';
  }

  // now says whether what is shown is what the table contains. If it is old, the times stand still.
  function now(failed) {
    const problem = live.querySelector('[data-read]');
    live.classList.toggle('old', !!failed);
    failed ||= problem.classList.contains('failed') ? 'not live' : '';
    const late = +problem.dataset.read > 5;
    if (failed) set(failed, 'failed');
    else if (paused) set('paused', '');
    else set(late ? 'read ' + duration(+problem.dataset.read) + ' ago' : 'live', late ? '' : 'live');
  }

  function tick() {
    if (state.classList.contains('failed')) return;
    const passed = (performance.now() - received) / 1000;
    for (const e of live.querySelectorAll('[data-left],[data-age]')) {
      const left = e.dataset.left !== undefined;
      const s = left ? Math.max(e.dataset.left - passed, 0) : +e.dataset.age + passed;
      if (e.localName === 'progress') {
        e.value = s;
        e.classList.toggle('low', s < e.max / 3);
      } else {
        const text = duration(s);
        if (e.textContent !== text) e.textContent = text;
      }
    }
  }

  async function fetchLive() {
    clearTimeout(timer);
    if (asked) asked.abort();
    const request = asked = new AbortController();
    let next = every;
    try {
      const timeout = setTimeout(() => request.abort(), 20000);
      // A browser refuses to fetch an address with a password, which a relative one has if the page was opened with one.
      const response = await fetch(new URL(live.dataset.src, location.origin + location.pathname), { cache: 'no-store', signal: request.signal, redirect: 'error' })
        .finally(() => clearTimeout(timeout));
      if (!response.ok) throw new Error('status ' + response.status);
      const text = await response.text();
      const wanted = live.cloneNode(false);
      wanted.innerHTML = text; // of a template that escapes; the policy allows no script in it
      received = performance.now();
      morph(live, wanted);
      now();
      tick();
    } catch (err) {
      if (asked !== request) return;
      now('no answer from this page');
      next = everyAfterFailure;
    }
    asked = null;
    if (!paused && !document.hidden) timer = setTimeout(fetchLive, next);
  }

  function resume() {
    if (document.hidden || paused) {
      clearTimeout(timer);
      return;
    }
    fetchLive();
  }

  // show fetches what another address shows, without loading the page.
  async function show(address, push) {
    const url = new URL(address, location.href);
    if (push) history.pushState(null, '', address); else history.replaceState(null, '', address); // with the password of the page's own address
    for (const [id, name] of [['json', 'locks.json'], ['refresh', './']]) {
      document.getElementById(id).href = name + url.search;
    }
    form.elements.sort.value = url.searchParams.get('sort') || '-age';
    live.dataset.src = 'live' + url.search;
    await fetchLive();
  }

  function addressOfForm() {
    const values = new URLSearchParams(new FormData(form));
    for (const [name, unless] of [['q', ''], ['state', ''], ['sort', '-age']]) if (values.get(name) === unless) values.delete(name);
    const text = values.toString();
    return text ? './?' + text : './';
  }

  pause.hidden = false;
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.setAttribute('aria-pressed', String(paused));
    now();
    resume();
  });
  let typing = 0;
  if (form) {
    form.addEventListener('input', () => {
      clearTimeout(typing);
      typing = setTimeout(() => show(addressOfForm(), false), 250);
    });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      clearTimeout(typing);
      show(addressOfForm(), true);
    });
    form.elements.q.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !form.elements.q.value) return;
      event.preventDefault();
      form.elements.q.value = '';
      show(addressOfForm(), false);
    });
  }
  helpButton.hidden = false;
  helpButton.addEventListener('click', () => help.showModal());
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open || event.target.closest('input, select, textarea')) return;
    if (event.key === '?') {
      help.showModal();
    } else if (event.key === '/' && form) {
      form.elements.q.focus();
      form.elements.q.select();
    } else {
      return;
    }
    event.preventDefault();
  });
  const copy = document.getElementById('copy');
  if (copy && navigator.clipboard) { // browsers have it over HTTPS, and of this machine
    copy.hidden = false;
    copy.addEventListener('click', async () => {
      await navigator.clipboard.writeText(document.getElementById('link').href);
      copy.textContent = 'Copied';
    });
  }
  document.addEventListener('click', (event) => {
    const link = event.target.closest('th a, .pages a');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const focus = link.dataset.focus;
    show(link.getAttribute('href'), true).then(() => {
      const again = [...live.querySelectorAll('[data-focus]')].find((e) => e.dataset.focus === focus);
      (again || document.getElementById('locks')).focus({ preventScroll: true });
    });
  });
  window.addEventListener('popstate', () => location.reload());
  document.addEventListener('visibilitychange', resume);
  now();
  setInterval(() => { if (!document.hidden && !paused) tick(); }, matchMedia('(prefers-reduced-motion: reduce)').matches ? 1000 : 100);
  timer = setTimeout(fetchLive, every);
})();
